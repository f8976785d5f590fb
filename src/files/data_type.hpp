#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace megamoe {

/// The element types of safetensors.
enum class DataType : std::uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64,
  kC64,
};

struct DataTypeFacts {
  DataType type;
  std::string_view name;  // as headers spell it
  int bits;               // of one element
};

inline constexpr std::array kDataTypes = {
    DataTypeFacts{DataType::kBool, "BOOL", 8},
    DataTypeFacts{DataType::kF4, "F4", 4},
    DataTypeFacts{DataType::kF6E2M3, "F6_E2M3", 6},
    DataTypeFacts{DataType::kF6E3M2, "F6_E3M2", 6},
    DataTypeFacts{DataType::kU8, "U8", 8},
    DataTypeFacts{DataType::kI8, "I8", 8},
    DataTypeFacts{DataType::kF8E5M2, "F8_E5M2", 8},
    DataTypeFacts{DataType::kF8E4M3, "F8_E4M3", 8},
    DataTypeFacts{DataType::kF8E8M0, "F8_E8M0", 8},
    DataTypeFacts{DataType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    DataTypeFacts{DataType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    DataTypeFacts{DataType::kI16, "I16", 16},
    DataTypeFacts{DataType::kU16, "U16", 16},
    DataTypeFacts{DataType::kF16, "F16", 16},
    DataTypeFacts{DataType::kBF16, "BF16", 16},
    DataTypeFacts{DataType::kI32, "I32", 32},
    DataTypeFacts{DataType::kU32, "U32", 32},
    DataTypeFacts{DataType::kF32, "F32", 32},
    DataTypeFacts{DataType::kI64, "I64", 64},
    DataTypeFacts{DataType::kU64, "U64", 64},
    DataTypeFacts{DataType::kF64, "F64", 64},
    DataTypeFacts{DataType::kC64, "C64", 64},
};

constexpr const DataTypeFacts& facts(DataType type) {
  return kDataTypes[static_cast<std::size_t>(type)];
}

constexpr bool data_types_are_in_order() {
  for (std::size_t i = 0; i < kDataTypes.size(); ++i)
    if (kDataTypes[i].type != static_cast<DataType>(i)) return false;
  return true;
}
static_assert(data_types_are_in_order());

constexpr std::string_view name_of(DataType type) {
  return facts(type).name;
}

constexpr std::optional<DataType> find_data_type(std::string_view name) {
  for (const DataTypeFacts& known : kDataTypes)
    if (known.name == name) return known.type;
  return std::nullopt;
}

}  // namespace megamoe
