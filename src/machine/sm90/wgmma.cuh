#pragma once

#include <cstdint>

#include "base/portable.hpp"
#include "machine/sm90/descriptor.hpp"
#include "machine/sm90/operands.hpp"

// The warpgroup's matrix instruction: D[64 x tokens] from weights in registers and tokens in shared
// memory. Registers of a wgmma in flight must not be touched, and nothing may be in flight over the
// back edge of a loop: ptxas then serialises every wgmma (C7514), which the build refuses.
namespace megamoe::sm90 {

template <Operands kOperands, int kTokens>
struct Wgmma;

#include "machine/sm90/generated/wgmma.inc"

// Orders register writes before the wgmma that reads them.
MEGAMOE_DEVICE void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}

MEGAMOE_DEVICE void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}

// All but the last `kInFlight` groups are done.
template <int kInFlight>
MEGAMOE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kInFlight) : "memory");
}

}  // namespace megamoe::sm90
