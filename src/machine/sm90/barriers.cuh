#pragma once

#include "machine/cuda/ptx.cuh"
#include "machine/sm90/plan.hpp"

namespace megamoe::sm90 {

// Named barriers of a CTA. Id 0 belongs to __syncthreads.
enum class CtaBarrier : int {
  kDispatch = 1,  // the dispatch warps
  kWarpgroup,     // one math warpgroup: this id and the three that follow
  kAfterLast = kWarpgroup + kBlockSlabs,
};

MEGAMOE_DEVICE void sync_warpgroup(int warpgroup) {
  ptx::barrier_sync(static_cast<int>(CtaBarrier::kWarpgroup) + warpgroup, kWarpgroupThreads);
}

}  // namespace megamoe::sm90
