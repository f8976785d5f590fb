#pragma once

#include "base/portable.hpp"
#include "machine/cuda/ptx.cuh"
#include "megamoe/problem.hpp"
#include "numerics/swiglu.hpp"

namespace megamoe::gpu {

// numerics/swiglu.hpp with one path for both kinds: SwiGLU is the other with a slope of 1 and
// nothing added to up (adding 0 turns a -0 into +0, which no code can tell).
struct ActivationForm {
  float bound;
  float slope;
  float added;
  bool is_approximate;

  MEGAMOE_DEVICE explicit ActivationForm(const Activation& activation) {
    const bool is_oai = activation.kind == ActivationKind::kSwigluOai;
    bound = is_oai ? activation.limit : activation.clamp;
    slope = is_oai ? activation.alpha : 1.0F;
    added = is_oai ? 1.0F : 0.0F;
    is_approximate = activation.fast_math;
  }

  MEGAMOE_DEVICE float operator()(float gate, float up, float routing_weight) const {
    gate = ptx::min_or_nan(gate, bound);
    up = ptx::max_or_nan(ptx::min_or_nan(up, bound), -bound);
    const float argument = -(slope * gate);
    float gated;
    if (is_approximate)
      gated = gate * ptx::approximate_reciprocal(1.0F + ptx::approximate_exponential(argument));
    else
      gated = gate / (1.0F + exponential(argument));
    return gated * (up + added) * routing_weight;
  }
};

}  // namespace megamoe::gpu
