#pragma once

#include <cstdint>
#include <optional>

#include "megamoe/plan.hpp"
#include "plan/limits.hpp"
#include "protocol/ring.hpp"
#include "protocol/workspace.hpp"

namespace megamoe {

/// What a caller may ask of a plan, besides the problem.
struct PlanRequest {
  /// Tokens that a rank is expected to bring; by default its capacity. A wrong one costs speed
  /// only. Brought into 0..capacity.
  std::optional<int> expected_tokens = std::nullopt;
  /// Rows of the pool, rounded up to 384s and at most the full pool; 0: what the budget allows.
  std::int64_t pool_rows = 0;
  /// Symmetric memory of a rank, all of it; 0: what the limits allow.
  std::uint64_t byte_budget = 0;
};

/// The plan for `problem` on a machine of these limits: pure and deterministic.
///
/// `pool_rows`, and with it the layout of symmetric memory, depends on the problem, the machine and
/// the budget but neither on expected_tokens nor on the workers; a later call of the same layer
/// with another hint passes the layer's own pool_rows.
///
/// Throws Error(kInvalidArgument) when the problem is not valid, or when it does not fit the limits
/// or the request: the sentence lists the bytes.
Plan choose_plan(const Problem& problem, const Limits& limits, const PlanRequest& request = {});

/// Linear 2 blocks that take as long as a linear 1 block, where both wait for the same weights to
/// arrive. A CPU's few workers have many blocks each; their deal is fair enough.
constexpr int linear2_lead_of(const Plan& plan) {
  const KernelPlan& k = plan.kernel;
  if (k.machine == MachineKind::kCpu) return 0;
  const int linear1_steps = ceil_div(plan.problem.hidden, k.block_k) * k.linear1_block_n;
  const int linear2_steps = ceil_div(plan.problem.intermediate, k.block_k) * k.linear2_block_n;
  return linear1_steps / linear2_steps;
}

/// The ring that the plan's pool is.
constexpr Ring ring_of(const Plan& plan) {
  return {.blocks = static_cast<int>(plan.pool_rows / plan.kernel.block_m),
          .block_m = plan.kernel.block_m,
          .linear1_blocks = plan.linear1_blocks,
          .linear2_blocks = plan.linear2_blocks,
          .linear2_lead = linear2_lead_of(plan),
          .settled_rows = plan.kernel.settles_rows ? plan.kernel.block_m : 0};
}

/// The symmetric memory that the plan counts, carved.
Workspace workspace_of(const Plan& plan, const Limits& limits);

}  // namespace megamoe
