#pragma once

#include "machine/cuda/context.cuh"
#include "protocol/forward.hpp"

namespace megamoe::gpu {

// Role: dispatch                                                            SM90, SM100
//   runs on   the dispatch warps of a CTA, each a team
//   does      the protocol's dispatch: counts, source indices, barrier 1, pulls; on machines that
//             settle rows, that too, wave by wave; after gate 2 the clean-up
//   waits     FinishedBlocks, before a ring block is overwritten; ReadyBlocks, before rows settle
//   signals   ArrivedRows; ReadyBlocks, a settled row each; RolesJoined
template <class Context, class M>
MEGAMOE_DEVICE void dispatch_rows(const Context& here, M& m) {
  (void)dispatch(m, here.args.call);
}

}  // namespace megamoe::gpu
