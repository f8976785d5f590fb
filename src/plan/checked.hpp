#pragma once

#include <string_view>

#include "base/check.hpp"
#include "megamoe/plan.hpp"
#include "protocol/workspace.hpp"

namespace megamoe {

inline constexpr int kMostSharedBytes = 227 * 1024;  ///< of a CTA: an SM's less the system's KiB
inline constexpr int kMostStages = 32;

constexpr std::string_view what_is_wrong_with_blocks(const KernelPlan& k) {
  if (k.block_m < kSmallestBlockM || k.block_m > kLargestBlockM || k.block_m % 8 != 0)
    return "block_m: 8 to 192 rows, in eights";
  if (k.linear1_block_n < 64 || k.linear1_block_n % 64 != 0)
    return "linear1_block_n: 64 gate and up rows make one group of 32 activations";
  if (k.linear2_block_n < 32 || k.linear2_block_n % 32 != 0)
    return "linear2_block_n: rows are packed by 32";
  return {};
}

constexpr std::string_view what_is_wrong_on_a_cpu(const KernelPlan& k) {
  if (k.stages != 0 || k.shared_bytes != 0 || k.tmem_columns != 0)
    return "stages: a CPU has no pipeline in shared memory";
  return {};
}

constexpr std::string_view what_is_wrong_on_a_gpu(const KernelPlan& k) {
  if (k.block_k < 128 || k.block_k % 128 != 0)
    return "block_k: a swizzled tile is 128 bytes of K wide";
  if (k.stages < 2) return "stages: a pipeline needs two";
  if (k.stages > kMostStages) return "stages: more than 32 are never filled";
  if (k.dispatch_warps < 1 || k.issue_warps < 1)
    return "dispatch_warps: someone must pull and load";
  if (k.math_warps < 4 || k.math_warps % 4 != 0) return "math_warps: they work in groups of four";
  if (k.threads() > 1024) return "threads: a CTA has at most 1024";
  if (k.shared_bytes < 1 || k.shared_bytes > kMostSharedBytes)
    return "shared_bytes: a CTA may ask for at most 227 KiB";
  return {};
}

constexpr std::string_view what_is_wrong_on_sm100(const KernelPlan& k) {
  if (k.block_m % 16 != 0) return "block_m: a paired MMA takes multiples of 16 tokens";
  if (k.linear1_block_n != 128 || k.linear2_block_n != 128)
    return "linear1_block_n: a CTA of a pair has 128 weight rows";
  if (k.tmem_columns < 2 * k.block_m || k.tmem_columns > 512 ||
      (k.tmem_columns & (k.tmem_columns - 1)) != 0)
    return "tmem_columns: a power of two up to 512 that holds accumulators and scales";
  return {};
}

/// Why no kernel can be built of it; empty when one can.
constexpr std::string_view what_is_wrong(const KernelPlan& k) {
  if (const auto reason = what_is_wrong_with_blocks(k); !reason.empty()) return reason;
  if (k.machine == MachineKind::kCpu) return what_is_wrong_on_a_cpu(k);
  if (const auto reason = what_is_wrong_on_a_gpu(k); !reason.empty()) return reason;
  return k.machine == MachineKind::kSm100 ? what_is_wrong_on_sm100(k) : std::string_view();
}

/// The plan itself; throws Error(kInvalidArgument) with the reason when something is wrong. One
/// function for constants, where a broken plan does not compile, and for run time.
constexpr KernelPlan checked(const KernelPlan& kernel) {
  if (const auto reason = what_is_wrong(kernel); !reason.empty())
    throw Error(ErrorCode::kInvalidArgument, sentence("the plan can't be built: ", reason));
  return kernel;
}

static_assert(checked({.block_m = 16}).block_m == 16);
static_assert(!what_is_wrong({.block_m = 20}).empty());

}  // namespace megamoe
