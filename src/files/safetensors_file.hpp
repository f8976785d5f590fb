#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.hpp"
#include "files/mapped_file.hpp"
#include "files/safetensors_header.hpp"

namespace megamoe {

/// A tensor of a mapped file. The file promises no alignment, so elements are read with at().
/// Shares the mapping.
struct TensorView {
  std::string name;
  DataType type = DataType::kU8;
  std::vector<std::int64_t> shape;
  std::span<const std::uint8_t> bytes;
  std::shared_ptr<const MappedFile> file;

  /// "tensor 'x' of input.safetensors", to begin a sentence with.
  std::string where() const;

  template <class T>
  std::int64_t count() const {
    return static_cast<std::int64_t>(bytes.size() / sizeof(T));
  }

  /// Element `index` in row-major order.
  template <class T>
  T at(std::int64_t index) const {
    MEGAMOE_CHECK(index >= 0 && index < count<T>());
    T value;
    std::memcpy(&value, bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }

  /// Entry `index` of the first axis, as bytes.
  std::span<const std::uint8_t> slice(std::int64_t index) const;
};

/// One axis as the reader understands it: what it counts, and the extent that it must have.
struct Axis {
  std::string_view meaning;
  std::int64_t extent;
};

/// Throws unless the tensor has exactly these axes; the sentence says which one is off, and why it
/// must be what it must.
void require_shape(const TensorView& tensor, std::initializer_list<Axis> axes);

/// Throws unless the tensor's type is one of these.
void require_type(const TensorView& tensor, std::initializer_list<DataType> types);

/// A safetensors file, mapped and wholly checked: after construction every tensor's bytes lie in
/// the file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;  // null if there is none
  const TensorView& get(std::string_view name) const;   // throws, with the names that there are

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, std::size_t> index_;  // keys live in tensors_
};

}  // namespace megamoe
