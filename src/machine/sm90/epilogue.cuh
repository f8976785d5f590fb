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

// 2^exponent, -126 to 127.
MEGAMOE_DEVICE float whole_power(int exponent) {
  return __uint_as_float(static_cast<std::uint32_t>(exponent) * 0x00800000U + 0x3F800000U);
}

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
  // Of a weight row of the block; kNanBase: every output is NaN.
  MEGAMOE_DEVICE int base(int row) const { return view().bases[row]; }
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
  // Of one token for each lane, of the chunk that starts at `first`; 0 past the last.
  MEGAMOE_DEVICE int lane_exponent(int first) const {
    const auto lane = static_cast<int>(threadIdx.x) % kWarpThreads;
    const bool is_token = lane < Chunk<kPlan>::kTokens && first + lane < block().rows();
    return is_token ? header().exponent(first + lane) : 0;
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
  // The thread's token t of a chunk, counted in the chunk.
  MEGAMOE_DEVICE int token(int t) const { return t / 2 * 8 + lane() % 4 * 2 + t % 2; }
};

// What brings a thread's sums to their size: the exponents of its two weight rows, and of the
// tokens. Almost always both are moderate, and one factor each is exact; else two each, in an order
// in which nothing overflows on the way to a finite result.
class Scaling {
 public:
  MEGAMOE_DEVICE Scaling(int upper_base, int lower_base)
      : upper_(exponent_of(upper_base)),
        lower_(exponent_of(lower_base)),
        upper_factor_(factor_of(upper_base)),
        lower_factor_(factor_of(lower_base)) {}

  // The same for all lanes of the warp. `token_exponent`: of one token of the chunk a lane, or 0.
  MEGAMOE_DEVICE bool is_moderate(int token_exponent) const {
    return __all_sync(0xFFFFFFFFU,
                      is_moderate_one(upper_) && is_moderate_one(lower_) &&
                          is_moderate_one(token_exponent)) != 0;
  }

  template <bool kIsModerate>
  MEGAMOE_DEVICE void apply(int token_exponent, float& upper, float& lower) const {
    if constexpr (kIsModerate) {
      const float token = whole_power(token_exponent);
      upper = upper * (upper_factor_ * token);
      lower = lower * (lower_factor_ * token);
    } else {
      const PowerPair token(token_exponent);
      upper = in_two(upper, PowerPair(upper_), token) * nan_or_one(upper_factor_);
      lower = in_two(lower, PowerPair(lower_), token) * nan_or_one(lower_factor_);
    }
  }

 private:
  static constexpr int kModerate = 60;

  static MEGAMOE_DEVICE bool is_moderate_one(int exponent) {
    return static_cast<unsigned>(exponent + kModerate) <= 2U * kModerate;
  }
  static MEGAMOE_DEVICE int exponent_of(int base) { return base == kNanBase ? 0 : base; }
  // NaN for kNanBase alone: whatever else is far from moderate makes no mantissa bit, and so no
  // NaN.
  static MEGAMOE_DEVICE float factor_of(int base) {
    return base == kNanBase ? __int_as_float(0x7FC00000) : whole_power(base);
  }
  static MEGAMOE_DEVICE float nan_or_one(float factor) { return factor == factor ? 1.0F : factor; }
  static MEGAMOE_DEVICE float in_two(float sum, const PowerPair& row, const PowerPair& token) {
    return sum * row.first * token.first * row.second * token.second;
  }

  int upper_, lower_;
  float upper_factor_, lower_factor_;
};

}  // namespace megamoe::sm90
