#pragma once

#include "plan/choose.hpp"

namespace megamoe {

/// Decides pool_rows and everything of the plan that is about symmetric memory. Needs the plan's
/// problem and its blocks.
void choose_pool(Plan& plan, const Limits& limits, const PlanRequest& request);

}  // namespace megamoe
