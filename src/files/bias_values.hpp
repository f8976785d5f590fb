#pragma once

#include <cstdint>
#include <vector>

#include "files/safetensors_file.hpp"

namespace megamoe {

/// Biases [first, first + count) of an F32 or BF16 tensor as fp32: pointing into the file where
/// that is aligned, else copied into `scratch`.
const float* bias_values(const TensorView& biases,
                         std::int64_t first,
                         std::int64_t count,
                         std::vector<float>& scratch);

}  // namespace megamoe
