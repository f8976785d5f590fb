#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "megamoe/problem.hpp"

namespace megamoe {

/// What executes the layer.
enum class MachineKind : std::uint8_t { kCpu, kSm90, kSm100 };

constexpr std::string_view name(MachineKind machine) {
  switch (machine) {
    case MachineKind::kCpu: return "cpu";
    case MachineKind::kSm90: return "sm90";
    case MachineKind::kSm100: return "sm100";
  }
  return "unknown";
}

/// The part of a plan that a kernel is compiled for; structural, so that it can be a template
/// argument. The CPU machine has no fields but the first four.
struct KernelPlan {
  MachineKind machine = MachineKind::kCpu;
  int block_m = 16;          ///< rows of a pool block
  int linear1_block_n = 64;  ///< interleaved gate and up rows of a linear 1 block
  int linear2_block_n = 64;  ///< output channels of a linear 2 block
  int block_k = 0;           ///< K of one pipeline stage
  bool settles_rows =
      false;               ///< between the linears, each row of linear 2's input takes another form
  int stages = 0;          ///< of the pipeline of tiles
  int dispatch_warps = 0;  ///< pull rows
  int issue_warps = 0;     ///< load tiles and issue MMAs
  int math_warps = 0;      ///< SM90: multiply and finish; SM100: finish
  int store_m = 0;         ///< rows that one warpgroup stages on their way out
  int pull_bytes = 0;      ///< of a row that a dispatch warp has in flight
  int shared_bytes = 0;    ///< shared memory of a CTA
  int tmem_columns = 0;    ///< SM100: allocated, a power of two

  constexpr int warps() const { return dispatch_warps + issue_warps + math_warps; }
  constexpr int threads() const { return 32 * warps(); }
  bool operator==(const KernelPlan&) const = default;
};

/// A field of the plan, what it came to, and why.
struct FiredRule {
  std::string field;
  std::string value;
  std::string why;

  bool operator==(const FiredRule&) const = default;
};

/// A named share of some memory.
struct PlanItem {
  std::string_view name;  ///< static storage
  std::uint64_t bytes = 0;

  bool operator==(const PlanItem&) const = default;
};

/// What was chosen for a problem on a machine: a value that depends on nothing else.
///
/// Ranks agree on `pool_rows`, as it decides the layout of symmetric memory; on nothing else of it.
struct Plan {
  Problem problem;
  int expected_tokens = 0;     ///< the hint: tokens that a rank brings
  double expected_rows = 0.0;  ///< the rows of an expert that follow from it
  KernelPlan kernel;
  int workers = 1;        ///< of this rank
  int padded_hidden = 0;  ///< H and I as the machine packs them; padding holds zeros
  int padded_intermediate = 0;
  int linear1_blocks = 1;           ///< N-blocks of linear 1
  int linear2_blocks = 1;           ///< N-blocks of linear 2
  int experts_per_wave = 1;         ///< experts with rows whose linear 1 comes before any linear 2
  std::int64_t pool_rows = 0;       ///< a multiple of 384
  std::int64_t full_pool_rows = 0;  ///< the pool that no routing can fill
  std::uint64_t symmetric_budget = 0;     ///< bytes that were allowed, kNoBudget for any
  std::uint64_t symmetric_bytes = 0;      ///< of a rank
  std::vector<PlanItem> symmetric_items;  ///< sum up to symmetric_bytes
  std::vector<PlanItem> shared_items;     ///< sum up to kernel.shared_bytes
  std::vector<FiredRule> rules;           ///< in the order of the decisions

  bool operator==(const Plan&) const = default;
};

inline constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};

/// The plan as a person reads it: several lines, the last one ended.
std::string explain(const Plan& plan);

}  // namespace megamoe
