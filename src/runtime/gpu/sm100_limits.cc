#include "runtime/gpu/sm100_limits.hpp"

#include "base/check.hpp"
#include "machine/cuda/block_sizes.hpp"
#include "machine/sm100/kernel_args.hpp"
#include "machine/sm100/plans.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr int kIssueWarps = 4;  // weight loader, token loader, multiply, and an idle one

template <int kBlockM>
BuiltKernel kernel_of_size(const Problem& problem) {
  constexpr sm100::Plan kPlan = sm100::Choice<kBlockM>::kPlan;
  constexpr int kStorage = sizeof(sm100::SharedStorage<kPlan>);
  constexpr int kStages = kPlan.stages * static_cast<int>(sizeof(sm100::Stage<kPlan>));
  const gpu::SharedTail tail = sm100::shared_tail(kStorage, problem);
  const auto between = [](int from, int to) { return static_cast<std::uint64_t>(to - from); };
  return {.kernel = {.machine = MachineKind::kSm100,
                     .block_m = kBlockM,
                     .block_k = sm100::kStepDepth,
                     .stages = kPlan.stages,
                     .dispatch_warps = sm100::kDispatchTeams,
                     .issue_warps = kIssueWarps,
                     .math_warps = kPlan.epilogue_warps(),
                     .store_m = sm100::kChunkTokens,
                     .pull_bytes = tail.pull_bytes,
                     .shared_bytes = tail.end,
                     .tmem_columns = kPlan.columns().allocated()},
          .shared_items = {{"stages", between(0, kStages)},
                           {"control", between(kStages, kStorage)},
                           {"expert_counts", between(kStorage, tail.pulls)},
                           {"pulled_rows", between(tail.pulls, tail.end)}},
          .why = kPlan.epilogue_warpgroups == 1
                     ? "sixteen tokens are one chunk, for one warpgroup"
                     : "two warpgroups take chunks of sixteen tokens in turn"};
}

BuiltKernel kernel_of(const Problem& problem, int block_m) {
  return gpu::of_block_size<sm100::kBlockSizes>(
      "sm100", block_m, [&](auto size) { return kernel_of_size<size>(problem); });
}

}  // namespace

Limits sm100_limits(int num_sms) {
  require(num_sms >= sm100::kPairCtas,
          ErrorCode::kInvalidArgument,
          "num_sms is ",
          num_sms,
          "; SM100 works in pairs of SMs and needs at least 2");
  return {.machine = MachineKind::kSm100,
          .workers = num_sms / sm100::kPairCtas * sm100::kPairCtas,
          .shared_bytes = gpu::kSharedMemoryLimit,
          // A pair of CTAs takes two neighbouring blocks of 128 weight rows.
          .hidden_granule = sm100::kPairRows,
          .intermediate_granule = sm100::kStepDepth,
          .symmetric_bytes = 90 * kGiB,
          .pool_bytes = kGiB,
          .pool_format = &sm100::pool_format,
          .tiles = kSm100Tiles,
          .channels = kSm100Channels,
          .built = &kernel_of};
}

}  // namespace megamoe
