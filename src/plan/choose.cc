#include "plan/choose.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "plan/checked.hpp"
#include "plan/pool_size.hpp"

namespace megamoe {
namespace {

void note(Plan& plan, std::string_view field, std::int64_t value, std::string why) {
  plan.rules.push_back({std::string(field), sentence(value), std::move(why)});
}

// Rows of an expert when routing is balanced and every rank brings as many tokens as this one.
double expected_rows_of(const Problem& p, int tokens) {
  return static_cast<double>(tokens) * p.ranks * p.topk / p.experts;
}

// Pool blocks that an expert with rows is expected to fill.
std::int64_t blocks_m_of(const Plan& plan) {
  const auto rows = static_cast<std::int64_t>(std::ceil(plan.expected_rows));
  return std::max(ceil_div(rows, std::int64_t{plan.kernel.block_m}), std::int64_t{1});
}

void expect(Plan& plan, const PlanRequest& request) {
  const Problem& p = plan.problem;
  plan.expected_tokens = std::clamp(request.expected_tokens.value_or(p.capacity), 0, p.capacity);
  plan.expected_rows = expected_rows_of(p, plan.expected_tokens);
  plan.rules.push_back({"expected_rows",
                        sentence(plan.expected_rows),
                        sentence("of an expert, in a balanced routing: T ",
                                 plan.expected_tokens,
                                 " x R ",
                                 p.ranks,
                                 " x K ",
                                 p.topk,
                                 " / E ",
                                 p.experts)});
}

void choose_tile(Plan& plan, const Limits& limits) {
  const TileRule& rule = tile_rule_of(limits.tiles, plan.expected_rows);
  plan.kernel.block_m = rule.block_m;
  const bool is_last = rule.up_to_rows_per_expert == kAnyRows;
  const double bound = is_last && limits.tiles.size() > 1
                           ? limits.tiles[limits.tiles.size() - 2].up_to_rows_per_expert
                           : rule.up_to_rows_per_expert;
  note(plan,
       "block_m",
       rule.block_m,
       sentence(is_last ? "above " : "up to ", bound, " rows an expert; ", rule.why));
}

// Linear 1 blocks of a call on this rank, if they are `block_n` wide.
std::int64_t expected_blocks(const Plan& plan, int block_n) {
  const Problem& p = plan.problem;
  const std::int64_t pairs = std::int64_t{plan.expected_tokens} * p.topk;
  const auto touched = std::clamp<std::int64_t>(pairs, 1, p.experts_per_rank());
  return touched * blocks_m_of(plan) * ceil_div(2 * plan.padded_intermediate, block_n);
}

void choose_channels(Plan& plan, const Limits& limits) {
  plan.padded_hidden = limits.padded_hidden(plan.problem);
  plan.padded_intermediate = limits.padded_intermediate(plan.problem);
  const auto* rule = limits.channels.data();
  while (expected_blocks(plan, rule->linear1_block_n) <
         std::int64_t{rule->least_blocks_per_worker} * plan.workers)
    ++rule;
  plan.kernel.linear1_block_n = rule->linear1_block_n;
  plan.kernel.linear2_block_n = rule->linear2_block_n;
  plan.linear1_blocks = ceil_div(2 * plan.padded_intermediate, rule->linear1_block_n);
  plan.linear2_blocks = ceil_div(plan.padded_hidden, rule->linear2_block_n);
  note(plan,
       "block_n",
       rule->linear1_block_n,
       sentence(rule->why,
                "; ",
                expected_blocks(plan, rule->linear1_block_n),
                " linear 1 blocks for ",
                plan.workers,
                " workers"));
}

// The fewest experts whose linear 1 keeps every worker busy, though half of the rows may be
// elsewhere, then evened out over the waves: a last wave of a few experts would leave workers idle.
void choose_wave(Plan& plan, const Limits& limits) {
  const int experts = plan.problem.experts_per_rank();
  if (limits.one_wave) {
    const std::int64_t ring = plan.pool_rows / plan.kernel.block_m;
    const auto room = std::max<std::int64_t>(ring / blocks_m_of(plan), 1);
    plan.experts_per_wave = static_cast<int>(std::min<std::int64_t>(experts, room));
    note(plan,
         "experts_per_wave",
         plan.experts_per_wave,
         "linear 1 of all that the ring holds, then linear 2");
    return;
  }
  const std::int64_t blocks = blocks_m_of(plan) * plan.linear1_blocks;
  const std::int64_t wanted = std::int64_t{kImbalance} * plan.workers;
  std::int64_t fewest = ceil_div(wanted, blocks);
  std::string why = sentence(
      "an expert has ", blocks, " linear 1 blocks, and ", plan.workers, " workers want ", wanted);
  if (fewest == 1 && blocks_m_of(plan) == 1 && experts > 1) {
    fewest = 2;
    why += "; two, so that linear 2 of the first finds its linear 1 long done";
  }
  fewest = std::min<std::int64_t>(fewest, experts);
  const auto even = ceil_div<std::int64_t>(experts, experts / fewest);
  if (even != fewest) why += sentence("; ", fewest, " suffice, evened out over ", experts);
  const std::int64_t ring = plan.pool_rows / plan.kernel.block_m;
  const auto room = std::max<std::int64_t>(ring / blocks_m_of(plan), 1);
  if (room < even) why += sentence("; the ring's ", ring, " blocks hold ", room);
  plan.experts_per_wave = static_cast<int>(std::min(even, room));
  note(plan, "experts_per_wave", plan.experts_per_wave, why);
}

// The widest rows that a kernel has shared memory for.
int most_hidden(const Problem& problem, const Limits& limits, int block_m) {
  Problem p = problem;
  int fits = 0;
  int too_wide = kMaxLinearWidth / kScaleGroup + 1;
  while (too_wide - fits > 1) {
    const int middle = fits + (too_wide - fits) / 2;
    p.hidden = middle * kScaleGroup;
    (limits.built(p, block_m).kernel.shared_bytes <= limits.shared_bytes ? fits : too_wide) =
        middle;
  }
  return fits * kScaleGroup;
}

// Of every height, as other calls of the layer may take another one.
void require_shared_memory(const Problem& problem, const Limits& limits) {
  for (const TileRule& tile : limits.tiles) {
    const int bytes = limits.built(problem, tile.block_m).kernel.shared_bytes;
    require(bytes <= limits.shared_bytes,
            ErrorCode::kInvalidArgument,
            "hidden is ",
            problem.hidden,
            "; with rows so wide the kernel of block_m ",
            tile.block_m,
            " takes ",
            bytes,
            " bytes of shared memory of a CTA's ",
            limits.shared_bytes,
            "; machine ",
            name(limits.machine),
            " takes at most ",
            most_hidden(problem, limits, tile.block_m));
  }
}

// The kernel that was built for the height.
void take_built(Plan& plan, const Limits& limits) {
  require_shared_memory(plan.problem, limits);
  const KernelPlan blocks = plan.kernel;
  BuiltKernel built = limits.built(plan.problem, blocks.block_m);
  plan.kernel = built.kernel;
  plan.kernel.linear1_block_n = blocks.linear1_block_n;
  plan.kernel.linear2_block_n = blocks.linear2_block_n;
  plan.shared_items = std::move(built.shared_items);
  note(plan, "math_warps", plan.kernel.math_warps, std::string(built.why));
  note(plan, "stages", plan.kernel.stages, "what its shared memory holds beside all else");
  if (plan.kernel.tmem_columns > 0)
    note(plan,
         "tmem_columns",
         plan.kernel.tmem_columns,
         "two accumulators, and scales; allocated as a power of two");
}

}  // namespace

Plan choose_plan(const Problem& problem, const Limits& limits, const PlanRequest& request) {
  validate(problem);
  Plan plan;
  plan.problem = problem;
  plan.kernel.machine = limits.machine;
  plan.workers = limits.workers;
  expect(plan, request);
  choose_tile(plan, limits);
  choose_channels(plan, limits);
  choose_pool(plan, limits, request);
  choose_wave(plan, limits);
  if (limits.built != nullptr) take_built(plan, limits);
  plan.kernel = checked(plan.kernel);
  return plan;
}

Workspace workspace_of(const Plan& plan, const Limits& limits) {
  return Workspace::plan(plan.problem, limits.pool_format(plan.problem), plan.pool_rows);
}

}  // namespace megamoe
