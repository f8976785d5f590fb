#include "files/scale_bytes.hpp"

#include <bit>
#include <cstring>

namespace megamoe {
namespace {

/// The byte b with 2^(b - 127) == value, or 255: then there is none.
constexpr std::uint8_t power_of_two_byte(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kLeast = 0x0040'0000;  // 2^-127, a subnormal of fp32
  if (bits == kLeast) return 0;
  const bool is_power = (bits & 0x007F'FFFF) == 0 && bits != 0 && bits < 0x7F80'0000;
  return is_power ? static_cast<std::uint8_t>(bits >> 23) : 255;
}
static_assert(power_of_two_byte(1.0F) == 127 && power_of_two_byte(0x1p-127F) == 0);
static_assert(power_of_two_byte(0x1p127F) == 254 && power_of_two_byte(0x1p-126F) == 1);
static_assert(power_of_two_byte(0.0F) == 255 && power_of_two_byte(-1.0F) == 255 &&
              power_of_two_byte(3.0F) == 255);

}  // namespace

void require_scale_type(const TensorView& scales) {
  require_type(scales, {DataType::kU8, DataType::kF8E8M0, DataType::kF32});
}

void copy_scale_bytes(const TensorView& scales,
                      std::int64_t first,
                      std::int64_t count,
                      std::uint8_t* out) {
  if (scales.type != DataType::kF32) {
    std::memcpy(out, scales.bytes.data() + first, static_cast<std::size_t>(count));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = scales.at<float>(first + i);
    out[i] = power_of_two_byte(value);
    if (out[i] == 255)
      throw Error(ErrorCode::kBadFile,
                  sentence(scales.where(),
                           ": scale at index ",
                           first + i,
                           " is ",
                           value,
                           "; it must be a power of two from 2^-127 to 2^127"));
  }
}

const std::uint8_t* scale_bytes(const TensorView& scales,
                                std::int64_t first,
                                std::int64_t count,
                                std::vector<std::uint8_t>& scratch) {
  if (scales.type != DataType::kF32) return scales.bytes.data() + first;
  scratch.resize(static_cast<std::size_t>(count));
  copy_scale_bytes(scales, first, count, scratch.data());
  return scratch.data();
}

}  // namespace megamoe
