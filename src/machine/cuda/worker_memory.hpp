#pragma once

#include <cstdint>

#include "protocol/counters.hpp"
#include "protocol/schedule.hpp"

// What the roles of a CTA share in its shared memory on every GPU machine.
namespace megamoe::gpu {

// Blocks that the weight loader may run ahead, and their headers.
inline constexpr int kFeedSlots = 4;

// One block on its way from the weight loader, which walks the schedule, to those who work on it.
// No rows: there are no more blocks.
struct FeedSlot {
  Block block;
  alignas(8) std::uint64_t full;
  std::uint64_t empty;           // the token loader and every warp that works on the block
  std::uint32_t finished_warps;  // warps that are done with the block; zero between blocks
};

// Words that the teams of a worker meet at.
struct WorkerWords {
  std::uint64_t first_epoch;
  std::uint64_t gate_seen;  // the rank's gate, as the relaying team saw it last
  RolesJoined roles_joined;
  std::uint32_t relay_has_left;  // the relaying team gave up; gate_seen is final
  std::uint32_t is_abandoned;    // the token loader gave up; no more blocks are to be fed
};

}  // namespace megamoe::gpu
