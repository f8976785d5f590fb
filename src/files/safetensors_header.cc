#include "files/safetensors_header.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "base/math.hpp"
#include "files/header_json.hpp"
#include "files/printable.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

/// A tensor must lie within the data, and have as many bytes there as its type and shape take.
void check_extent(const std::string& path, const TensorEntry& tensor, std::uint64_t data_bytes) {
  const auto where = [&] { return sentence(path, ": tensor ", printable(tensor.name)); };
  require(tensor.begin <= tensor.end,
          ErrorCode::kBadFile,
          where(),
          ": data_offsets go backwards, from ",
          tensor.begin,
          " to ",
          tensor.end);
  require(tensor.end <= data_bytes,
          ErrorCode::kBadFile,
          where(),
          " ends at byte ",
          tensor.end,
          " of the data; the file has ",
          data_bytes,
          " bytes of data (is it truncated?)");
  const std::optional<std::uint64_t> bytes = bytes_of(tensor.type, tensor.shape);
  require(bytes.has_value(),
          ErrorCode::kBadFile,
          where(),
          ": ",
          name_of(tensor.type),
          " ",
          to_string(tensor.shape),
          " is not a whole number of bytes below 2^64");
  require(tensor.end - tensor.begin == *bytes,
          ErrorCode::kBadFile,
          where(),
          ": ",
          name_of(tensor.type),
          " ",
          to_string(tensor.shape),
          " takes ",
          *bytes,
          " bytes; its data_offsets give it ",
          tensor.end - tensor.begin);
}

/// The tensors must tile [0, data_bytes).
void check_places(const std::string& path,
                  std::vector<TensorEntry>& tensors,
                  std::uint64_t data_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    check_extent(path, tensor, data_bytes);
    const auto where = [&] { return sentence(path, ": tensor ", printable(tensor.name)); };
    require(tensor.begin >= covered,
            ErrorCode::kBadFile,
            where(),
            " begins at byte ",
            tensor.begin,
            " of the data and overlaps the one before, which ends at ",
            covered);
    require(tensor.begin == covered,
            ErrorCode::kBadFile,
            where(),
            " begins at byte ",
            tensor.begin,
            " of the data and leaves a gap after ",
            covered);
    covered = tensor.end;
  }
  require(covered == data_bytes,
          ErrorCode::kBadFile,
          path,
          ": tensors end at byte ",
          covered,
          " of the data; the file has ",
          data_bytes,
          " bytes of data");
}

}  // namespace

std::optional<std::uint64_t> bytes_of(DataType type, std::span<const std::int64_t> shape) {
  // Zeros first: [2^62, 2^62, 0] has no elements, however large the others.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  auto bits = static_cast<std::uint64_t>(facts(type).bits);
  for (std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits))
      return std::nullopt;
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

std::string to_string(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis != 0) text += ',';
    text += std::to_string(shape[axis]);
  }
  return text + "]";
}

SafetensorsHeader parse_safetensors_header(const std::string& path,
                                           std::span<const std::uint8_t> file) {
  require(file.size() >= kLengthBytes,
          ErrorCode::kBadFile,
          path,
          " has ",
          file.size(),
          " bytes; a safetensors file has at least 8");
  std::uint64_t length = 0;
  for (std::uint64_t byte = 0; byte < kLengthBytes; ++byte)
    length |= std::uint64_t{file[byte]} << (8 * byte);
  require(length <= kMaxHeaderBytes,
          ErrorCode::kBadFile,
          path,
          ": header length is ",
          length,
          "; the most is ",
          kMaxHeaderBytes,
          " (is it a safetensors file?)");
  require(length <= file.size() - kLengthBytes,
          ErrorCode::kBadFile,
          path,
          ": header length is ",
          length,
          "; the file has ",
          file.size() - kLengthBytes,
          " bytes after it (is it truncated?)");
  const std::span<const std::uint8_t> text = file.subspan(kLengthBytes, length);
  require(!text.empty() && text.front() == '{',
          ErrorCode::kBadFile,
          path,
          ": header does not begin with '{'");

  SafetensorsHeader header{read_header_json(path, text), kLengthBytes + length};
  check_places(path, header.tensors, file.size() - header.data_offset);
  return header;
}

std::string format_safetensors_header(std::span<const TensorEntry> tensors) {
  constexpr std::size_t kAlignment = 64;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const TensorEntry& tensor : tensors)
    json[tensor.name] = {{"dtype", name_of(tensor.type)},
                         {"shape", tensor.shape},
                         {"data_offsets", {tensor.begin, tensor.end}}};
  std::string text = json.dump();
  text.resize(align_up(kLengthBytes + text.size(), kAlignment) - kLengthBytes, ' ');
  std::string bytes;
  for (std::uint64_t byte = 0; byte < kLengthBytes; ++byte)
    bytes += static_cast<char>(text.size() >> (8 * byte) & 0xFF);
  return bytes + text;
}

}  // namespace megamoe
