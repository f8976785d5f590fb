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
    return is_approximate ? approximate(gate, up, routing_weight)
                          : precise(gate, up, routing_weight);
  }

  // No branches: several of them run side by side. What the exponential or the reciprocal would
  // make subnormal is zero.
  MEGAMOE_DEVICE float approximate(float gate, float up, float routing_weight) const {
    constexpr float kLog2OfE = 1.44269504F;
    gate = ptx::min_or_nan(gate, bound);
    const float power = ptx::approximate_power_of_two(gate * (slope * -kLog2OfE));
    const float gated = gate * ptx::approximate_reciprocal(1.0F + power);
    return gated * (bounded(up) + added) * routing_weight;
  }

  MEGAMOE_DEVICE float precise(float gate, float up, float routing_weight) const {
    gate = ptx::min_or_nan(gate, bound);
    const float gated = gate / (1.0F + exponential(-(slope * gate)));
    return gated * (bounded(up) + added) * routing_weight;
  }

 private:
  MEGAMOE_DEVICE float bounded(float up) const {
    return ptx::max_or_nan(ptx::min_or_nan(up, bound), -bound);
  }
};

}  // namespace megamoe::gpu
