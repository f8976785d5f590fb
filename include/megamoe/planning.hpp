#pragma once

#include "megamoe/layer_options.hpp"
#include "megamoe/plan.hpp"
#include "megamoe/problem.hpp"

namespace megamoe {

/// A machine to plan for; it need not be here.
struct PlannedMachine {
  MachineKind kind = MachineKind::kCpu;
  int workers = 0;  ///< CPU: workers of a rank, 0: this computer's cores / ranks; GPU: SMs, 0: the
                    ///< usual card's
};

/// The plan that a layer of `problem` would run by on `machine`, without making one: pure but for
/// the number of this computer's cores. Of the options only numerics, expected_tokens, pool_rows
/// and memory_budget count. Throws Error(kInvalidArgument) as choose_plan() does, naming the bytes
/// when it does not fit.
Plan plan_layer(const Problem& problem,
                const PlannedMachine& machine,
                const LayerOptions& options = {});

}  // namespace megamoe
