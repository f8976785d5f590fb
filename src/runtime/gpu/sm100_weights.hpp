#pragma once

#include <functional>

#include "machine/sm100/weight_map.hpp"
#include "runtime/gpu/gpu_weights.hpp"

namespace megamoe {

/// In the Blackwell machine's layout: beside the codes lie their scales, and the copy engine knows
/// the codes by a tensor map. Every layer fits.
class Sm100Weights : public GpuWeights {
 public:
  using Encode = std::function<CUtensorMap(const gpu::TensorMapRequest&)>;

  Sm100Weights(const Problem& problem, DeviceMemory& memory, const Encode& encode);

  const sm100::LinearWeights& arguments(Phase phase) const;

 private:
  Linear make_linear_of(Phase phase) const;
  sm100::LinearWeights make_arguments(Phase phase, const Linear& all, const Encode& encode) const;
  const Linear& linear(Phase phase) const override;
  void pack_linear(const Source& from, const Packed& to) const override;

  Problem problem_;
  Linear linear1_, linear2_;
  sm100::LinearWeights arguments1_, arguments2_;
};

}  // namespace megamoe
