#pragma once

#include <algorithm>
#include <array>

#include "base/math.hpp"
#include "megamoe/plan.hpp"

// How much shared memory a GPU's CTA takes, by arithmetic, before anything is compiled. The truth
// is sizeof of the kernel's storage; a machine's tests hold it to these sums.

namespace megamoe {

inline constexpr int kMostSharedBytes = 227 * 1024;  ///< of a CTA: an SM's less the system's KiB
inline constexpr int kMostStages = 32;
inline constexpr int kBarrierBytes = 8;
inline constexpr int kSwizzleAlignment =
    1024;  ///< of tiles that are read with the 128-byte swizzle

struct SharedPart {
  std::string_view name;
  int bytes = 0;
};

struct SharedSum {
  std::array<SharedPart, 5> fixed;
  int stage_bytes = 0;

  constexpr int fixed_bytes() const {
    int sum = 0;
    for (const SharedPart& part : fixed)
      sum += part.bytes;
    return sum;
  }
  constexpr int stages_in(int capacity) const { return (capacity - fixed_bytes()) / stage_bytes; }
  constexpr int bytes(int stages) const { return fixed_bytes() + stages * stage_bytes; }
};

/// Rows are pulled in equal pieces of at most 4 KiB, multiples of 16 bytes.
constexpr int pull_bytes_of(int row_bytes) {
  constexpr int kLargest = 4096;
  return align_up(ceil_div(row_bytes, ceil_div(row_bytes, kLargest)), 16);
}
static_assert(pull_bytes_of(4096) == 4096 && pull_bytes_of(7168) == 3584);

/// Counts of all experts, and the rows that dispatch warps have in flight.
constexpr SharedPart expert_counts(int experts) {
  return {"expert_counts", align_up(4 * experts, kSwizzleAlignment)};
}
constexpr SharedPart pull_buffers(const KernelPlan& k) {
  return {"pull_buffers", align_up(k.dispatch_warps * k.pull_bytes, kSwizzleAlignment)};
}

/// SM100: a stage holds half of the block's tokens (the other half is the paired CTA's), the
/// weights unpacked to a byte, scales of both (the tokens' in whole groups of 128 rows), and two
/// barriers.
constexpr SharedSum sm100_shared(const KernelPlan& k, int experts) {
  const int warpgroups = k.math_warps / 4;
  const int linear1_rows = 2 * warpgroups * k.store_m * (k.linear1_block_n / 2);
  const int linear2_rows = warpgroups * k.store_m * k.linear2_block_n * 2;
  const int amax = k.store_m * k.math_warps * 4;
  // Pulls, accumulators full and empty, and two rows of combine a warp; the columns' address.
  const int barriers = (k.dispatch_warps + 4 + 2 * k.math_warps) * kBarrierBytes + 4;
  const int weight_rows = k.linear1_block_n;
  return {.fixed = {{expert_counts(experts),
                     pull_buffers(k),
                     {"staging", align_up(std::max(linear1_rows, linear2_rows), kSwizzleAlignment)},
                     {"amax", amax},
                     {"barriers", barriers}}},
          .stage_bytes = k.block_m / 2 * k.block_k + weight_rows * k.block_k +
                         align_up(k.block_m, 128) * k.block_k / 32 + weight_rows * k.block_k / 32 +
                         2 * kBarrierBytes};
}

/// SM100: two accumulators, the tokens' scales (a column per 32 rows, in whole groups of 128) and
/// the weights' four; allocated as a power of two, 32 at least.
constexpr int tmem_columns_used(int block_m) {
  return 2 * block_m + align_up(block_m, 128) / 32 + 4;
}
constexpr int tmem_columns_of(int block_m) {
  int columns = 32;
  while (columns < tmem_columns_used(block_m))
    columns *= 2;
  return columns;
}
static_assert(tmem_columns_of(16) == 64 && tmem_columns_of(192) == 512);

}  // namespace megamoe
