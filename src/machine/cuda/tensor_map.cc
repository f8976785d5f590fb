#include "machine/cuda/tensor_map.hpp"

#include <cuda_runtime_api.h>

#include "base/check.hpp"

namespace megamoe::gpu {
namespace {

using Encode = CUresult (*)(CUtensorMap*,
                            CUtensorMapDataType,
                            cuuint32_t,
                            void*,
                            const cuuint64_t*,
                            const cuuint64_t*,
                            const cuuint32_t*,
                            const cuuint32_t*,
                            CUtensorMapInterleave,
                            CUtensorMapSwizzle,
                            CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

// Asked of the runtime, so that nothing links the driver: a computer without one runs the rest.
Encode driver_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      "cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  require(error == cudaSuccess && function != nullptr,
          ErrorCode::kUnsupportedMachine,
          "the driver has no cuTensorMapEncodeTiled: ",
          cudaGetErrorString(error));
  return reinterpret_cast<Encode>(function);
}

}  // namespace

CUtensorMap encode_tensor_map(const TensorMapRequest& request) {
  static const Encode encode = driver_encode();
  constexpr cuuint32_t kEveryValue[3] = {1, 1, 1};
  CUtensorMap map{};
  const CUresult result = encode(&map,
                                 request.type,
                                 request.dimensions,
                                 request.address,
                                 request.extents,
                                 request.strides,
                                 request.box,
                                 kEveryValue,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 request.swizzle,
                                 CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  require(result == CUDA_SUCCESS,
          ErrorCode::kInvalidArgument,
          "cuTensorMapEncodeTiled refuses a map of the type ",
          static_cast<int>(request.type),
          " with error ",
          static_cast<int>(result));
  return map;
}

}  // namespace megamoe::gpu
