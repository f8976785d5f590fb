#include "device_memory.hpp"
#include "machine/cuda/ptx.cuh"
#include "spin.hpp"

namespace megamoe::test {
namespace {

__global__ void __launch_bounds__(128, 1) spin_kernel(Spin spin) {
  if (threadIdx.x != 0) return;
  const std::uint64_t start = ptx::global_nanoseconds();
  const volatile std::uint32_t* stop = spin.stop;
  while (ptx::global_nanoseconds() - start < spin.nanoseconds) {
    if (stop != nullptr && *stop != 0) break;
    ptx::sleep_nanoseconds(200);
  }
  spin.times[blockIdx.x] = {start, ptx::global_nanoseconds()};
}

}  // namespace

void prepare_spin() {
  expect_cuda(
      cudaFuncSetAttribute(
          spin_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sm90::kSharedMemoryLimit),
      "spin's shared memory");
  cudaFuncAttributes attributes{};
  expect_cuda(cudaFuncGetAttributes(&attributes, spin_kernel), "loading spin");
}

cudaError_t launch_spin(const Spin& spin, cudaStream_t stream) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = spin.co_residence == sm90::CoResidence::kByDevice ? 1 : 0;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(spin.workers));
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = sm90::kSharedMemoryLimit;
  config.stream = stream;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  const cudaError_t error = cudaLaunchKernelEx(&config, spin_kernel, spin);
  if (error != cudaSuccess) (void)cudaGetLastError();  // or the next call would report it
  return error;
}

}  // namespace megamoe::test
