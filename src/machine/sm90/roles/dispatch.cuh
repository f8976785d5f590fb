#pragma once

#include "machine/sm90/context.cuh"
#include "protocol/forward.hpp"

namespace megamoe::sm90 {

// Role: dispatch
//   runs on   kDispatchTeams warps per CTA, each a team
//   does      the protocol's dispatch: counts, source indices, barrier 1, pulls; after gate 2 the
//   clean-up signals   ArrivedRows; RolesJoined
template <Plan kPlan>
MEGAMOE_DEVICE void dispatch_rows(const Context<kPlan>& here, Team<kPlan, Role::kDispatch>& m) {
  (void)dispatch(m, here.args.call);
}

}  // namespace megamoe::sm90
