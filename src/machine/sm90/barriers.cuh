#pragma once

#include "machine/cuda/ptx.cuh"
#include "machine/sm90/plan.hpp"

namespace megamoe::sm90 {

// Named barriers of a CTA. Id 0 belongs to __syncthreads.
enum class CtaBarrier : int {
  kMath = 1,       // all math warpgroups
  kDispatch,       // the dispatch warps
  kWarpgroup,      // one math warpgroup: this id and the three that follow
  kAfterLast = kWarpgroup + kBlockSlabs,
};

template <Plan kPlan>
MEGAMOE_DEVICE void sync_math() {
  ptx::barrier_sync(static_cast<int>(CtaBarrier::kMath), kPlan.math_threads());
}

MEGAMOE_DEVICE void sync_warpgroup(int warpgroup) {
  ptx::barrier_sync(static_cast<int>(CtaBarrier::kWarpgroup) + warpgroup, kWarpgroupThreads);
}

}  // namespace megamoe::sm90
