#pragma once

#include <cstdint>
#include <vector>

#include "files/safetensors_file.hpp"

namespace megamoe {

/// Throws unless the tensor's type can hold UE8M0 scales: U8 or F8_E8M0, and F32 where checkpoints
/// are read.
void require_scale_type(const TensorView& scales);

/// Scales [first, first + count) of a tensor as UE8M0 bytes: pointing into the file, or converted
/// into `scratch` (which is resized) if they are F32. Throws with the index of an F32 that is not a
/// power of two in UE8M0's range.
const std::uint8_t* scale_bytes(const TensorView& scales,
                                std::int64_t first,
                                std::int64_t count,
                                std::vector<std::uint8_t>& scratch);

/// The same, into memory of the caller.
void copy_scale_bytes(const TensorView& scales,
                      std::int64_t first,
                      std::int64_t count,
                      std::uint8_t* out);

}  // namespace megamoe
