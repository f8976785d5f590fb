#pragma once

#include "plan/limits.hpp"

namespace megamoe {

/// The Blackwell machine's limits for the plan, by the numbers that its kernels are compiled with:
/// true on every computer. One CTA an SM; SMs work in pairs, an odd one stays idle.
Limits sm100_limits(int num_sms);

}  // namespace megamoe
