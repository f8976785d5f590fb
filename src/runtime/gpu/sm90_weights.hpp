#pragma once

#include "machine/sm90/kernel_args.hpp"
#include "runtime/gpu/gpu_weights.hpp"

namespace megamoe {

/// In the Hopper machine's layout: beside the codes lie the rows' exponents. A layer that fp8 can't
/// hold exactly is refused by expert.
class Sm90Weights : public GpuWeights {
 public:
  Sm90Weights(const Problem& problem, sm90::Operands operands, DeviceMemory& memory);

  sm90::LinearWeights arguments(Phase phase) const;

 private:
  sm90::WeightLayout layout(Phase phase) const;
  Linear make_linear_of(Phase phase) const;
  const Linear& linear(Phase phase) const override;
  void pack_linear(const Source& from, const Packed& to) const override;

  Problem problem_;
  sm90::Operands operands_;
  Linear linear1_, linear2_;
};

}  // namespace megamoe
