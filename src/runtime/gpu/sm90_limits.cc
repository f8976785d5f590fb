#include "runtime/gpu/sm90_limits.hpp"

#include "base/check.hpp"
#include "machine/cuda/block_sizes.hpp"
#include "machine/sm90/kernel_args.hpp"
#include "machine/sm90/pack.hpp"
#include "machine/sm90/plans.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr int kIssueWarps = 2;  // the weight loader and the token loader

template <sm90::Operands kOperands>
PoolFormat pool_format_of(const Problem& problem) {
  return sm90::pool_format(problem, kOperands);
}

template <sm90::Operands kOperands, int kBlockM>
BuiltKernel kernel_of_size(const Problem& problem) {
  constexpr sm90::Plan kPlan = sm90::Choice<kOperands, kBlockM>::kPlan;
  constexpr int kStorage = sizeof(sm90::SharedStorage<kPlan>);
  constexpr int kStages = kPlan.stages * static_cast<int>(sizeof(sm90::Stage<kPlan>));
  const auto tail = sm90::shared_tail(kStorage, problem);
  const auto bytes = [](int from, int to) { return static_cast<std::uint64_t>(to - from); };
  const bool is_narrow = kPlan.math_warpgroups == 4;
  return {.kernel = {.machine = MachineKind::kSm90,
                     .block_m = kBlockM,
                     .block_k = sm90::kStepDepth,
                     .settles_rows = true,
                     .stages = kPlan.stages,
                     .dispatch_warps = sm90::kDispatchTeams,
                     .issue_warps = kIssueWarps,
                     .math_warps = 4 * kPlan.math_warpgroups,
                     .store_m = sm90::epilogue_tokens(kPlan),
                     .pull_bytes = tail.pull_bytes,
                     .shared_bytes = tail.end},
          .shared_items = {{"stages", bytes(0, kStages)},
                           {"epilogues", bytes(kStages, kStorage)},
                           {"expert_counts", bytes(kStorage, tail.pulls)},
                           {"pulled_rows", bytes(tail.pulls, tail.end)}},
          .why = is_narrow ? "four warpgroups decode: memory is the limit"
                           : "two warpgroups: their sums need the registers of four"};
}

template <sm90::Operands kOperands>
BuiltKernel kernel_of(const Problem& problem, int block_m) {
  return gpu::of_block_size<sm90::kBlockSizes>(
      "sm90", block_m, [&](auto size) { return kernel_of_size<kOperands, size>(problem); });
}

template <sm90::Operands kOperands>
Limits limits_of(int num_sms) {
  return {.machine = MachineKind::kSm90,
          .workers = num_sms,
          .shared_bytes = sm90::kSharedMemoryLimit,
          .hidden_granule = sm90::kStepDepth,
          .intermediate_granule = sm90::kStepDepth,
          // Half of the smallest card; weights want the other half.
          .symmetric_bytes = 40 * kGiB,
          .pool_bytes = kGiB,
          .pool_format = &pool_format_of<kOperands>,
          .tiles = kSm90Tiles,
          .channels = kSm90Channels,
          .one_wave = true,
          .built = &kernel_of<kOperands>};
}

}  // namespace

Limits sm90_limits(int num_sms, sm90::Operands operands) {
  require(num_sms >= 1,
          ErrorCode::kInvalidArgument,
          "num_sms is ",
          num_sms,
          "; a rank needs at least 1");
  return operands == sm90::Operands::kFloat8 ? limits_of<sm90::Operands::kFloat8>(num_sms)
                                             : limits_of<sm90::Operands::kBfloat16>(num_sms);
}

sm90::Operands sm90_operands(const LayerOptions& options) {
  return options.numerics == "exact" ? sm90::Operands::kBfloat16 : sm90::Operands::kFloat8;
}

bool sm90_fits_fast(const Problem& problem, const WeightView& weights) {
  const auto fits = [&](Phase phase, const gpu::CanonicalLinear& linear) {
    return sm90::fits_float8(sm90::layout_of(problem, sm90::Operands::kFloat8, phase), linear);
  };
  return fits(Phase::kLinear1, {weights.linear1, weights.linear1_scale, true}) &&
         fits(Phase::kLinear2, {weights.linear2, weights.linear2_scale, false});
}

}  // namespace megamoe
