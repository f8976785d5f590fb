#pragma once

#include <cstdint>

#include "machine/sm100/context.cuh"
#include "machine/sm100/descriptor.hpp"
#include "machine/sm100/tcgen05.cuh"

// What both epilogues share: which rows and tokens a thread has, and a chunk of its sums.
namespace megamoe::sm100 {

MEGAMOE_DEVICE void sync_warpgroup(int warpgroup) {
  ptx::barrier_sync(static_cast<int>(CtaBarrier::kWarpgroup) + warpgroup, kWarpgroupThreads);
}

// A thread of an epilogue warpgroup. Its warp reads a quarter of tensor memory, 32 of the block's
// 128 weight rows, in two halves of 16: the thread has rows lane / 4 and 8 below of each.
struct EpilogueThread {
  int warpgroup;
  int thread;  // in the warpgroup

  static MEGAMOE_DEVICE EpilogueThread now() {
    const auto thread = static_cast<int>(threadIdx.x);
    return {thread / kWarpgroupThreads, thread % kWarpgroupThreads};
  }
  MEGAMOE_DEVICE int warp() const { return thread / kWarpThreads; }
  MEGAMOE_DEVICE int lane() const { return thread % kWarpThreads; }
  // The upper row of a half, counted in the block.
  MEGAMOE_DEVICE int upper_row(int half) const { return warp() * 32 + half * 16 + lane() / 4; }
  // The thread's token i of an octet of a chunk, counted in the chunk.
  MEGAMOE_DEVICE int token(int octet, int i) const { return octet * 8 + lane() % 4 * 2 + i; }
};

// A thread's sums of sixteen tokens.
struct Chunk {
  static constexpr int kHalves = 2;
  static constexpr int kOctets = kChunkTokens / 8;

  // [half][octet][i] of the upper row for i = 0, 1; of the lower row for 2, 3.
  float sums[kHalves][kOctets][4];

  // `tmem`: the accumulator's column of the chunk's first token.
  MEGAMOE_DEVICE Chunk(std::uint32_t tmem, int warp) {
    const std::uint32_t quarter = tmem + (static_cast<std::uint32_t>(warp * 32) << 16);
    MEGAMOE_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      MEGAMOE_UNROLL
      for (int octet = 0; octet < kOctets; ++octet)
        tcgen05::load(quarter + lane_half(half) + octet * 8, sums[half][octet]);
    }
    tcgen05::wait_for_loads();
    // Whoever releases the accumulator from here on has these loads behind it.
    tcgen05::fence_before_telling();
    // Nothing that uses a sum moves in front of the wait.
    MEGAMOE_UNROLL
    for (int i = 0; i < kHalves * kOctets * 4; ++i)
      ptx::pin(sums[i / (kOctets * 4)][i / 4 % kOctets][i % 4]);
  }
};

// A block in the epilogue's hands.
template <Plan kPlan>
struct BlockWork {
  const Context<kPlan>& here;
  FedBlock block;
  std::uint32_t header_slot;

  MEGAMOE_DEVICE const HeaderSlot<kPlan>& header() const {
    return *ptx::shared_pointer<const HeaderSlot<kPlan>>(header_slot);
  }
};

}  // namespace megamoe::sm100
