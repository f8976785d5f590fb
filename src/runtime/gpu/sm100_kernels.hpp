#pragma once

#include "machine/cuda/tensor_map.hpp"
#include "machine/sm100/launch.hpp"
#include "runtime/gpu/kernel_set.hpp"

namespace megamoe {

/// Blackwell's kernels as they are for its own cards. Their emulated form (emulated_kernels.cc)
/// differs in where a kernel and a tensor map come from.
class Sm100Kernels : public KernelSet {
 public:
  std::string name(const CardFacts& card) const override;
  bool has_kernel(int block_m) const override;
  void load(const CardFacts& card) override;
  std::unique_ptr<MachineWeights> make_weights(const Problem& problem,
                                               DeviceMemory& memory) override;
  void launch(const KernelCall& call, cudaStream_t stream) const override;

 private:
  /// Of this build, without a kernel where it has none.
  virtual sm100::KernelInstance instance_of(int block_m) const;
  virtual CUtensorMap encode(const gpu::TensorMapRequest& request);
  virtual gpu::CoResidence co_residence() const { return gpu::CoResidence::kByDevice; }
};

}  // namespace megamoe
