#include "files/safetensors_file.hpp"

#include <algorithm>

#include "files/printable.hpp"

namespace megamoe {

std::string TensorView::where() const {
  return sentence("tensor ", printable(name), " of ", file ? file->path() : "no file");
}

std::span<const std::uint8_t> TensorView::slice(std::int64_t index) const {
  MEGAMOE_CHECK(!shape.empty() && index >= 0 && index < shape[0]);
  const std::size_t stride = bytes.size() / static_cast<std::size_t>(shape[0]);
  return bytes.subspan(static_cast<std::size_t>(index) * stride, stride);
}

void require_shape(const TensorView& tensor, std::initializer_list<Axis> axes) {
  require(tensor.shape.size() == axes.size(),
          ErrorCode::kBadFile,
          tensor.where(),
          " has shape ",
          to_string(tensor.shape),
          "; it must have ",
          axes.size(),
          " axes");
  std::size_t axis = 0;
  for (const Axis& wanted : axes) {
    require(tensor.shape[axis] == wanted.extent,
            ErrorCode::kBadFile,
            tensor.where(),
            " has shape ",
            to_string(tensor.shape),
            ": axis ",
            axis,
            " (",
            wanted.meaning,
            ") is ",
            tensor.shape[axis],
            "; it must be ",
            wanted.extent);
    ++axis;
  }
}

void require_type(const TensorView& tensor, std::initializer_list<DataType> types) {
  if (std::find(types.begin(), types.end(), tensor.type) != types.end()) return;
  std::string allowed;
  for (DataType type : types)
    append_listed(allowed, name_of(type), " or ");
  throw Error(ErrorCode::kBadFile,
              sentence(tensor.where(), " is ", name_of(tensor.type), "; it must be ", allowed));
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(std::make_shared<MappedFile>(path)) {
  SafetensorsHeader header = parse_safetensors_header(path, file_->bytes());
  tensors_.reserve(header.tensors.size());
  for (TensorEntry& entry : header.tensors) {
    const auto bytes =
        file_->bytes().subspan(header.data_offset + entry.begin, entry.end - entry.begin);
    tensors_.push_back({std::move(entry.name), entry.type, std::move(entry.shape), bytes, file_});
  }
  for (std::size_t place = 0; place < tensors_.size(); ++place)
    index_.emplace(tensors_[place].name, place);
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const TensorView& SafetensorsFile::get(std::string_view name) const {
  if (const TensorView* tensor = find(name)) return *tensor;
  constexpr std::size_t kShown = 8;
  std::string have;
  for (std::size_t place = 0; place < std::min(tensors_.size(), kShown); ++place)
    append_listed(have, printable(tensors_[place].name));
  if (tensors_.size() > kShown) have += ", ...";
  throw Error(ErrorCode::kBadFile,
              sentence(path(),
                       " has no tensor ",
                       printable(name),
                       "; it has ",
                       tensors_.empty() ? "none at all" : have));
}

}  // namespace megamoe
