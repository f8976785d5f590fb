#pragma once

#include "machine/sm90/operands.hpp"
#include "megamoe/layer_options.hpp"
#include "megamoe/weights.hpp"
#include "plan/limits.hpp"

namespace megamoe {

/// The Hopper machine's limits for the plan, by the numbers that its kernels are compiled with:
/// true on every computer. As many workers as SMs: one CTA an SM. For a card of which a part is
/// used, the part.
Limits sm90_limits(int num_sms, sm90::Operands operands = sm90::Operands::kFloat8);

/// What the options' numerics come to: fast unless they say otherwise.
sm90::Operands sm90_operands(const LayerOptions& options);

/// Whether E4M3 operands hold the first expert of `weights` exactly.
bool sm90_fits_fast(const Problem& problem, const WeightView& weights);

}  // namespace megamoe
