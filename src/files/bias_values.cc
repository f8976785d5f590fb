#include "files/bias_values.hpp"

#include "numerics/bfloat16.hpp"

namespace megamoe {

const float* bias_values(const TensorView& biases,
                         std::int64_t first,
                         std::int64_t count,
                         std::vector<float>& scratch) {
  if (biases.type == DataType::kF32) {
    const std::uint8_t* place =
        biases.bytes.data() + static_cast<std::size_t>(first) * sizeof(float);
    if (reinterpret_cast<std::uintptr_t>(place) % alignof(float) == 0)
      return reinterpret_cast<const float*>(place);
  }
  scratch.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    scratch[static_cast<std::size_t>(i)] =
        biases.type == DataType::kF32 ? biases.at<float>(first + i)
                                      : to_float(Bfloat16{biases.at<std::uint16_t>(first + i)});
  return scratch.data();
}

}  // namespace megamoe
