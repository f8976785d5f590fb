#include "plan/pool_size.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "plan/byte_text.hpp"

namespace megamoe {
namespace {

// One problem on one machine, with the pool still to be chosen.
struct Carve {
  const Problem& problem;
  PoolFormat format;

  std::uint64_t bytes(std::int64_t pool_rows) const {
    return Workspace::plan(problem, format, pool_rows).bytes;
  }

  // The most rows, in granules, of `least`..`most` whose workspace has at most `budget` bytes;
  // `least` if even those have more.
  std::int64_t rows_within(std::uint64_t budget, std::int64_t least, std::int64_t most) const {
    std::int64_t fits = least / kPoolGranule;
    std::int64_t too_many = most / kPoolGranule + 1;
    while (too_many - fits > 1) {
      const std::int64_t middle = fits + (too_many - fits) / 2;
      (bytes(middle * kPoolGranule) <= budget ? fits : too_many) = middle;
    }
    return fits * kPoolGranule;
  }
};

std::string list_of(const std::vector<PlanItem>& items) {
  std::string list;
  for (const PlanItem& item : items)
    if (item.bytes > 0)
      list += sentence(list.empty() ? "" : ", ", item.name, " ", byte_text(item.bytes));
  return list;
}

void itemise(Plan& plan, const Workspace& workspace) {
  plan.symmetric_items.clear();
  for (const WorkspaceItem& item : items(workspace))
    plan.symmetric_items.push_back({item.name, item.bytes});
  plan.symmetric_bytes = workspace.bytes;
}

void require_within_budget(const Plan& plan) {
  require(plan.symmetric_bytes <= plan.symmetric_budget,
          ErrorCode::kInvalidArgument,
          "symmetric memory of a rank is ",
          byte_text(plan.symmetric_bytes),
          " (",
          plan.symmetric_bytes,
          " bytes) with a pool of ",
          plan.pool_rows,
          " rows; the budget is ",
          byte_text(plan.symmetric_budget),
          " (",
          plan.symmetric_budget,
          " bytes). It consists of ",
          list_of(plan.symmetric_items));
}

// Ring counters are 32 bits wide and grow by a block's N-blocks every lap.
void require_countable(const Plan& plan) {
  const std::int64_t laps = ceil_div(plan.full_pool_rows, plan.pool_rows) + 1;
  const std::int64_t counts = laps * std::max(plan.linear1_blocks, plan.linear2_blocks);
  require(counts <= std::numeric_limits<std::uint32_t>::max(),
          ErrorCode::kInvalidArgument,
          "pool_rows is ",
          plan.pool_rows,
          "; the worst routing would go round the pool ",
          laps,
          " times, and ",
          std::max(plan.linear1_blocks, plan.linear2_blocks),
          " blocks a time overflow a counter of 32 bits: it takes more rows");
}

std::string pool_reason(const Plan& plan, const std::string& bound) {
  if (plan.pool_rows == plan.full_pool_rows) return "the full pool: no routing fills it";
  return sentence(plan.pool_rows == kPoolGranule ? "the least pool; " : "",
                  bound,
                  "; the full pool has ",
                  plan.full_pool_rows,
                  ", with fewer the worst routing waits for laps");
}

}  // namespace

void choose_pool(Plan& plan, const Limits& limits, const PlanRequest& request) {
  const Problem& problem = plan.problem;
  const Carve carve{problem, limits.pool_format(problem)};
  const bool has_own_budget = request.byte_budget != 0;
  plan.symmetric_budget = has_own_budget ? std::min(request.byte_budget, limits.symmetric_bytes)
                                         : limits.symmetric_bytes;
  plan.full_pool_rows = full_pool_rows(problem);
  require(request.pool_rows >= 0,
          ErrorCode::kInvalidArgument,
          "pool_rows is ",
          request.pool_rows,
          "; it must be at least 0, which means what the budget allows");

  std::string why;
  if (request.pool_rows > 0) {
    plan.pool_rows = std::min(
        align_up(std::min(request.pool_rows, plan.full_pool_rows), std::int64_t{kPoolGranule}),
        plan.full_pool_rows);
    why = sentence("asked for ", request.pool_rows, ", in whole 384s and at most the full pool");
  } else {
    // Without a budget of the caller's own a pool takes what it is worth, not all there is.
    const std::uint64_t rest = carve.bytes(0);
    const std::uint64_t worth =
        limits.pool_bytes < kNoBudget - rest ? rest + limits.pool_bytes : kNoBudget;
    const bool by_pool_bytes = !has_own_budget && worth < plan.symmetric_budget;
    plan.pool_rows = carve.rows_within(
        by_pool_bytes ? worth : plan.symmetric_budget, kPoolGranule, plan.full_pool_rows);
    why = pool_reason(
        plan,
        by_pool_bytes
            ? sentence("more than ", byte_text(limits.pool_bytes), " of pool gains nothing")
            : std::string("what the budget leaves"));
  }
  itemise(plan, Workspace::plan(problem, carve.format, plan.pool_rows));
  plan.rules.push_back({"pool_rows", sentence(plan.pool_rows), why});
  plan.rules.push_back({"symmetric_bytes",
                        sentence(plan.symmetric_bytes),
                        plan.symmetric_budget == kNoBudget
                            ? std::string("no budget is set")
                            : sentence("within the ",
                                       byte_text(plan.symmetric_budget),
                                       " that ",
                                       has_own_budget ? "the caller" : "the machine",
                                       " allows")});
  require_within_budget(plan);
  require_countable(plan);
}

}  // namespace megamoe
