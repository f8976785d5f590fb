#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "files/data_type.hpp"

namespace megamoe {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // safetensors' own bound
inline constexpr std::size_t kMaxTensors = std::size_t{1} << 20;
inline constexpr std::size_t kMaxAxes = 16;

/// What a header says of one tensor, before anybody has looked whether it is true.
struct TensorEntry {
  std::string name;
  DataType type = DataType::kU8;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // in bytes after the header; end is one past the last
  std::uint64_t end = 0;
};

/// Bytes of a tensor of this type and shape; nothing if the count does not fit 64 bits or the last
/// byte would be shared with what follows.
std::optional<std::uint64_t> bytes_of(DataType type, std::span<const std::int64_t> shape);

/// "[3,4,5]"
std::string to_string(std::span<const std::int64_t> shape);

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by place in the file
  std::uint64_t data_offset = 0;     // of byte 0 of the first tensor in the file
};

/// Reads and checks the header of a file whose whole contents are `file`: its length, its JSON, and
/// that the tensors tile the rest of the file without gap or overlap, each with as many bytes as
/// its type and shape say. Throws Error(kBadFile) naming `path`, the tensor, the value and the
/// bound.
SafetensorsHeader parse_safetensors_header(const std::string& path,
                                           std::span<const std::uint8_t> file);

/// The bytes that come before the data: length and JSON, padded with spaces to 64 bytes. Entries
/// must be by place.
std::string format_safetensors_header(std::span<const TensorEntry> tensors);

}  // namespace megamoe
