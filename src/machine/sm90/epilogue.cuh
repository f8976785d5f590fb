#pragma once

#include <cstdint>

#include "machine/sm90/barriers.cuh"
#include "machine/sm90/context.cuh"
#include "machine/sm90/multiply.cuh"
#include "machine/sm90/pack.hpp"
#include "numerics/exponential.hpp"

// What both epilogues share: the block's header in shared memory, which rows a thread's sums belong
// to, and their exponents.
namespace megamoe::sm90 {

// 2^exponent in two factors, each a normal number: their product may not be one.
struct PowerPair {
  float first, second;

  MEGAMOE_DEVICE explicit PowerPair(int exponent)
      : first(power_of_two(exponent >> 1)), second(power_of_two(exponent - (exponent >> 1))) {}
};

// A header slot that is full, by its shared address.
template <Plan kPlan>
struct BlockHeader {
  using Slot = HeaderSlot<kPlan>;
  std::uint32_t slot;

  MEGAMOE_DEVICE SourceSlot source(int token) const { return view().source[token]; }
  MEGAMOE_DEVICE float routing_weight(int token) const { return view().routing_weight[token]; }
  MEGAMOE_DEVICE int exponent(int token) const { return view().exponent[token]; }
  // Of a weight row of the block. A NaN row makes every output NaN.
  MEGAMOE_DEVICE PowerPair base_power(int row) const {
    const int base = view().bases[row];
    PowerPair power(base == kNanBase ? 0 : base);
    if (base == kNanBase) power.first = __int_as_float(0x7FC00000);
    return power;
  }
  MEGAMOE_DEVICE bool is_filled() const { return view().is_filled != 0; }

 private:
  MEGAMOE_DEVICE const Slot& view() const { return *ptx::shared_pointer<const Slot>(slot); }
};

// Epilogues take the tokens of a tile in chunks, all by the same instructions: unrolled over a
// whole tile they outgrow the instruction cache, and cost three main loops.
template <Plan kPlan>
struct Chunk {
  static constexpr int kTokens = epilogue_tokens(kPlan);
  static constexpr int kCount = kPlan.block_m / kTokens;
  static constexpr int kSums = kTokens / 2;   // a thread's
  static constexpr int kPairs = kTokens / 4;  // a thread's tokens, of two rows each

  float sums[kSums];

  // Sums live in registers, which have no index: every chunk is named, and one is taken.
  MEGAMOE_DEVICE Chunk(const float (&all)[kPlan.block_m / 2], int number) {
    MEGAMOE_UNROLL
    for (int i = 0; i < kSums; ++i)
      sums[i] = all[i];
    MEGAMOE_UNROLL
    for (int named = 1; named < kCount; ++named) {
      if (number != named) continue;
      MEGAMOE_UNROLL
      for (int i = 0; i < kSums; ++i)
        sums[i] = all[named * kSums + i];
    }
  }

  // sums[upper(t)] and, 2 further, the row 8 below: of the thread's token t.
  static constexpr int upper(int t) { return t / 2 * 4 + t % 2; }
};

// One block of a math warp: nothing but the number of its slots, since what lives through the main
// loop costs registers that it needs.
template <Plan kPlan>
struct BlockWork {
  const Context<kPlan>& here;
  std::uint32_t index;

  MEGAMOE_DEVICE FedBlock block() const {
    return {here.feed() + index * static_cast<std::uint32_t>(sizeof(FeedSlot))};
  }
  MEGAMOE_DEVICE BlockHeader<kPlan> header() const {
    return {here.headers() + index * static_cast<std::uint32_t>(sizeof(HeaderSlot<kPlan>))};
  }
};

// Which of a slab's rows and of a chunk's tokens a math thread has.
struct FragmentPlace : MathPlace {
  // Opaque, so that what derives from the thread is computed where it is used.
  static MEGAMOE_DEVICE FragmentPlace now() {
    const auto thread = static_cast<int>(ptx::opaque(threadIdx.x));
    return {{thread / kWarpgroupThreads, thread % kWarpgroupThreads}};
  }

  // The upper of the two rows, counted in the block; the other is 8 below.
  MEGAMOE_DEVICE int upper_row(int slab) const {
    return slab * kSlabRows + warp() * 16 + lane() / 4;
  }
  // The thread's token t of the chunk that starts at token `first`.
  MEGAMOE_DEVICE int token_of(int first, int t) const {
    return first + t / 2 * 8 + lane() % 4 * 2 + t % 2;
  }
};

}  // namespace megamoe::sm90
