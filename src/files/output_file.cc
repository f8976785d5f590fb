#include "files/output_file.hpp"

#include <array>

namespace megamoe {
namespace {

SafetensorsOutput create(const std::string& path, std::int64_t tokens, int hidden, int experts) {
  const std::array<TensorSpec, 2> tensors = {
      TensorSpec{"y", DataType::kBF16, {tokens, hidden}},
      TensorSpec{"tokens_per_expert", DataType::kI64, {experts}}};
  return SafetensorsOutput::create(path, tensors);
}

template <class T>
std::span<T> typed(std::span<std::uint8_t> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

OutputFile::OutputFile(const std::string& path, std::int64_t tokens, int hidden, int experts)
    : file_(create(path, tokens, hidden, experts)) {}

std::span<Bfloat16> OutputFile::y() const {
  return typed<Bfloat16>(file_.tensor("y"));
}

std::span<std::int64_t> OutputFile::tokens_per_expert() const {
  return typed<std::int64_t>(file_.tensor("tokens_per_expert"));
}

}  // namespace megamoe
