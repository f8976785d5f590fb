#include "files/header_json.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/check.hpp"
#include "files/printable.hpp"

namespace megamoe {
namespace {

/// Receives the header's JSON as events, so that depth and duplicates are seen and nothing is built
/// but the list.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(std::string path) : path_(std::move(path)) {}

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

}  // namespace

std::vector<TensorEntry> read_header_json(const std::string& path,
                                          std::span<const std::uint8_t> text) {
  HeaderReader reader(path);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace megamoe
