#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "emulation/shared_with_device.hpp"
#include "machine/cuda/tensor_map.hpp"

namespace megamoe::emulation {

using gpu::TensorMapRequest;

struct EmulatorOptions {
  int ctas = 132;  // of the largest grid
  Modes modes{};
  std::uint64_t timeout_ms = 20'000;  // of a launch, from each CTA's start; 0: none
};

// One rank's Blackwell on a Hopper card: its tensor memory, its tensor maps, its copy of each
// kernel. Made on the current device, and used there.
//
// Order: load and encode, then prepare, then launch by the CUDA runtime with what load() gave.
// prepare() waits for its own copies and for nobody's kernels.
// Throws Error(kRunFailed) where CUDA fails.
class Emulator {
 public:
  explicit Emulator(const EmulatorOptions& options = {});
  ~Emulator();
  Emulator(Emulator&&) noexcept;
  Emulator& operator=(Emulator&&) noexcept;

  // A kernel, for cudaLaunchKernelExC and cudaFuncSetAttribute. It may have
  // 227 KiB - kSharedMemoryTaken of dynamic shared memory, and its blocks setmaxnreg's registers
  // in name only.
  const void* load(const Cubin& cubin);

  // Every tensor map that the kernels use for loads must come from here. FP4 maps
  // (16U4_ALIGN16B) are held to Blackwell's rules and encoded as bytes.
  CUtensorMap encode(const TensorMapRequest& request);

  // After the last load and encode, before a launch; again when there is more to encode. Kernels
  // that run meanwhile find their maps where they were.
  void prepare();

  // After the launch's stream has been synchronised with `result`: throws Error(kRunFailed) with
  // what the device library found, or with CUDA's own error.
  void check(cudaError_t result) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace megamoe::emulation
