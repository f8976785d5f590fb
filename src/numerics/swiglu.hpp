#pragma once

#include "megamoe/problem.hpp"
#include "numerics/exponential.hpp"

namespace megamoe {

// A NaN compares false and passes through; std::min, fmin and most vector minima would hide it.
constexpr float at_most(float value, float bound) {
  return value > bound ? bound : value;
}
constexpr float at_least(float value, float bound) {
  return value < bound ? bound : value;
}

struct PreciseExponential {
  constexpr float operator()(float x) const { return exponential(x); }
};

// The gated activation of one element, for both kinds, in fp32 and in this order of operations:
//
//   kSwiglu      gate / (1 + exp(-gate)) * up * routing_weight
//   kSwigluOai   gate / (1 + exp(-(alpha * gate))) * (up + 1) * routing_weight
//
// `gate` and `up` are the values after their rounding to bf16. A gate of -infinity gives NaN
// (-infinity / infinity), as the formula says, whatever the clamp; a large negative finite one
// gives -0 once exp overflows. Where `activation.fast_math` is set a machine may put approximations
// in the place of the exponential and of the division; this is the precise form that it is held
// against.
template <class Exponential = PreciseExponential>
constexpr float gated_activation(float gate,
                                 float up,
                                 float routing_weight,
                                 const Activation& activation,
                                 Exponential exponential_of = {}) {
  const bool is_oai = activation.kind == ActivationKind::kSwigluOai;
  const float bound = is_oai ? activation.limit : activation.clamp;
  gate = at_most(gate, bound);
  up = at_least(at_most(up, bound), -bound);
  const float slope = is_oai ? activation.alpha * gate : gate;
  const float linear = is_oai ? up + 1.0F : up;
  return gate / (1.0F + exponential_of(-slope)) * linear * routing_weight;
}

static_assert(gated_activation(0.0F, 3.0F, 1.0F, {}) == 0.0F);

}  // namespace megamoe
