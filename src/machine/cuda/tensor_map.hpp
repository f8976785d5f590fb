#pragma once

#include <cuda.h>

#include <cstdint>

namespace megamoe::gpu {

// What the copy engine is to know of a matrix in memory, or of a stack of them.
struct TensorMapRequest {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  std::uint32_t dimensions = 2;
  void* address = nullptr;            // on the device
  cuuint64_t extents[3] = {1, 1, 1};  // in values, innermost first
  cuuint64_t strides[2] = {};         // in bytes, of the second and the third
  cuuint32_t box[3] = {1, 1, 1};      // in values: what one copy brings
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

// As the driver encodes it. Throws Error(kUnsupportedMachine) without a driver, and
// Error(kInvalidArgument) with the driver's code for what it refuses.
CUtensorMap encode_tensor_map(const TensorMapRequest& request);

}  // namespace megamoe::gpu
