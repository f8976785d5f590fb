#pragma once

#include "machine/sm90/operands.hpp"
#include "runtime/gpu/kernel_set.hpp"

namespace megamoe {

class Sm90Kernels : public KernelSet {
 public:
  explicit Sm90Kernels(sm90::Operands operands) : operands_(operands) {}

  std::string name(const CardFacts& card) const override;
  bool has_kernel(int block_m) const override;
  void load(const CardFacts& card) override;
  std::unique_ptr<MachineWeights> make_weights(const Problem& problem,
                                               DeviceMemory& memory) override;
  void launch(const KernelCall& call, cudaStream_t stream) const override;

 private:
  sm90::Operands operands_;
};

}  // namespace megamoe
