#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "machine/cuda/run_options.hpp"
#include "megamoe/layer_options.hpp"
#include "runtime/gpu/device_memory.hpp"
#include "runtime/gpu/gpu_kind.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {

/// One rank's call as a kernel is told of it; for the time of launch() alone.
struct KernelCall {
  const Call& call;
  const MachineWeights& weights;  ///< of the same set
  int workers = 1;
  gpu::RunOptions options;
};

/// What differs between the GPU machines: a rank's kernels, what they want packed, and how they are
/// launched. What loads, makes, launches or waits works on this thread's current card.
class KernelSet {
 public:
  KernelSet() = default;
  virtual ~KernelSet() = default;
  KernelSet(const KernelSet&) = delete;
  KernelSet& operator=(const KernelSet&) = delete;

  /// What decides the bits of its results, on such a card.
  virtual std::string name(const CardFacts& card) const = 0;
  /// Whether this build has the kernel of a height of tile.
  virtual bool has_kernel(int block_m) const = 0;
  /// Once, before anything is launched: loading a kernel when it is first launched may wait for
  /// kernels that run, which may wait for it.
  virtual void load(const CardFacts& card) = 0;
  virtual std::unique_ptr<MachineWeights> make_weights(const Problem& problem,
                                                       DeviceMemory& memory) = 0;
  virtual void launch(const KernelCall& call, cudaStream_t stream) const = 0;
  /// Throws Error(kRunFailed) unless a wait for calls ended well.
  virtual void require_good(cudaError_t result, const char* what) const;
};

/// Why this build has no kernels for it; empty when it has.
std::string why_no_kernels(const GpuKind& kind);

/// Only of a kind that has kernels.
std::unique_ptr<KernelSet> make_kernel_set(const GpuKind& kind, const LayerOptions& options);

}  // namespace megamoe
