#include "machine/cuda/launch.hpp"

#include <cstddef>

#include "base/check.hpp"
#include "machine/cuda/card.hpp"

namespace megamoe::gpu {

void expect_success(cudaError_t error, const char* what) {
  require(error == cudaSuccess, ErrorCode::kRunFailed, what, ": ", cudaGetErrorString(error));
}

void load_kernel(const void* kernel) {
  cudaFuncAttributes attributes{};
  expect_success(cudaFuncGetAttributes(&attributes, kernel), "loading a kernel");
  // All the memory that its own static part leaves (kernels in emulated form have one), whatever
  // the problem: launches of several problems may overlap.
  const int dynamic = kSharedMemoryLimit - static_cast<int>(attributes.sharedSizeBytes);
  expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic),
                 "setting the kernel's shared memory");
}

void launch(const void* kernel,
            const LaunchShape& shape,
            CoResidence co_residence,
            cudaStream_t stream,
            const void* args) {
  require(kernel != nullptr,
          ErrorCode::kUnsupportedMachine,
          "this build leaves out the kernel for this height of tile");
  require(shape.shared_bytes <= kSharedMemoryLimit,
          ErrorCode::kUnsupportedMachine,
          "the kernel needs ",
          shape.shared_bytes,
          " bytes of shared memory; a CTA has at most ",
          kSharedMemoryLimit);
  load_kernel(kernel);
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  attributes[count].id = cudaLaunchAttributeCooperative;
  attributes[count++].val.cooperative = co_residence == CoResidence::kByDevice ? 1 : 0;
  if (shape.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.workers));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  void* arguments[] = {const_cast<void*>(args)};
  expect_success(cudaLaunchKernelExC(&config, kernel, arguments), "launching the kernel");
}

}  // namespace megamoe::gpu
