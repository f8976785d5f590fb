#pragma once

#include <cstdint>

#include "protocol/call.hpp"
#include "protocol/machine.hpp"

namespace megamoe {

/// One lane's share of a rank's words.
struct Share {
  std::int64_t first, stride;
};

/// Clears a lane's share of `count` counters.
template <Machine M, class AnyCounter>
MEGAMOE_PROTOCOL void clear_share(M& m,
                                  const Share& share,
                                  AnyCounter* counters,
                                  std::int64_t count) {
  for (std::int64_t i = share.first; i < count; i += share.stride)
    m.clear(&counters[i]);
}

/// Step 10 for one team of the dispatch role, between barriers 2 and 3: every counter that a call
/// counts up goes back to zero. Nobody reads them any more (a worker joins barrier 2 only when all
/// its roles have), and nobody may add for the next call before barrier 3. The gate and the rank
/// arrivals stay: they count for ever.
template <Machine M>
MEGAMOE_PROTOCOL void clean_up(M& m, const Call& call) {
  const Problem& p = call.problem;
  const Workspace& w = call.workspace;
  const std::int64_t team = std::int64_t{m.worker()} * m.num_teams() + m.team();
  const Share share{team * M::kLanes + m.lane(),
                    std::int64_t{m.num_workers()} * m.num_teams() * M::kLanes};
  clear_share(m, share, call.local(w.sent), p.experts);
  clear_share(m, share, call.local(w.received), std::int64_t{p.ranks} * p.experts_per_rank());
  clear_share(m, share, call.local(w.received_sum), p.experts_per_rank());
  clear_share(m, share, call.local(w.arrived), call.ring.blocks);
  clear_share(m, share, call.local(w.ready), call.ring.blocks);
  clear_share(m, share, call.local(w.finished), call.ring.blocks);
  for (std::int64_t r = share.first; r < p.ranks; r += share.stride)
    call.local(w.refusals)[r] = Refusal{};
}

}  // namespace megamoe
