#include "files/safetensors_header.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/check.hpp"
#include "base/math.hpp"
#include "files/printable.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

/// Receives the header's JSON as events, so that depth and duplicates are seen and nothing is built
/// but the list of tensors. The grammar is {name: {"dtype": s, "shape": [n...], "data_offsets": [n,
/// n]}..., "__metadata__": {s: s...}}.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  std::vector<TensorEntry> take() { return std::move(tensors_); }

  bool null() override { refuse_value("null"); }
  bool boolean(bool) override { refuse_value("a truth value"); }
  bool number_integer(number_integer_t value) override { refuse_value(value); }
  bool number_float(number_float_t, const string_t& text) override { refuse_value(text); }
  bool binary(binary_t&) override { refuse_value("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      require(value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
              ErrorCode::kBadFile,
              where(),
              ": shape axis ",
              current_.shape.size(),
              " is ",
              value,
              "; the most is 2^63 - 1");
      require(current_.shape.size() < kMaxAxes,
              ErrorCode::kBadFile,
              where(),
              " has more than ",
              kMaxAxes,
              " axes");
      current_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ != Place::kOffsets) refuse_value(value);
    require(num_offsets_ < 2, ErrorCode::kBadFile, where(), " has more than two data_offsets");
    (num_offsets_++ == 0 ? current_.begin : current_.end) = value;
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || key_ != "dtype") refuse_value(printable(value));
    const std::optional<DataType> type = find_data_type(value);
    require(type.has_value(),
            ErrorCode::kBadFile,
            where(),
            " has the unknown dtype ",
            printable(value));
    current_.type = *type;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kOutside: place_ = Place::kTop; return true;
      case Place::kTop:
        place_ = current_.name == "__metadata__" ? Place::kMetadata : Place::kTensor;
        keys_seen_.clear();
        num_offsets_ = 0;
        return true;
      default: refuse_value("an object");
    }
  }

  bool key(string_t& value) override {
    if (place_ == Place::kTop) {
      require(names_.insert(value).second,
              ErrorCode::kBadFile,
              path_,
              ": header names ",
              printable(value),
              " twice");
      require(names_.size() <= kMaxTensors,
              ErrorCode::kBadFile,
              path_,
              ": header has more than ",
              kMaxTensors,
              " tensors");
      current_ = TensorEntry{};
      current_.name = value;
      return true;
    }
    if (place_ == Place::kTensor) {
      require(value == "dtype" || value == "shape" || value == "data_offsets",
              ErrorCode::kBadFile,
              where(),
              " has the unknown key ",
              printable(value));
      require(std::find(keys_seen_.begin(), keys_seen_.end(), value) == keys_seen_.end(),
              ErrorCode::kBadFile,
              where(),
              " has the key ",
              printable(value),
              " twice");
      keys_seen_.push_back(value);
    }
    key_ = value;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      require(keys_seen_.size() == 3,
              ErrorCode::kBadFile,
              where(),
              " lacks one of dtype, shape, data_offsets");
      require(num_offsets_ == 2,
              ErrorCode::kBadFile,
              where(),
              " has ",
              num_offsets_,
              " data_offsets; it needs 2");
      tensors_.push_back(std::move(current_));
    }
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") refuse_value("a list");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position,
                   const std::string&,
                   const nlohmann::detail::exception&) override {
    throw Error(ErrorCode::kBadFile,
                sentence(path_, ": header is not JSON: it goes wrong at its byte ", position));
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets };

  std::string where() const { return sentence(path_, ": tensor ", printable(current_.name)); }

  template <class Value>
  [[noreturn]] void refuse_value(const Value& value) const {
    throw Error(ErrorCode::kBadFile,
                sentence(path_,
                         ": header has ",
                         value,
                         " where the format allows none, at tensor ",
                         printable(current_.name),
                         ", key ",
                         printable(key_)));
  }

  std::string path_;
  Place place_ = Place::kOutside;
  std::string key_;
  std::vector<std::string> keys_seen_;
  int num_offsets_ = 0;
  TensorEntry current_;
  std::vector<TensorEntry> tensors_;
  std::unordered_set<std::string> names_;
};

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
  std::uint64_t bits = static_cast<std::uint64_t>(facts(type).bits);
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

  HeaderReader reader(path);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  SafetensorsHeader header{reader.take(), kLengthBytes + length};
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
