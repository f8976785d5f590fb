#pragma once

#include <cstdint>

#include "machine/sm90/barriers.cuh"
#include "machine/sm90/context.cuh"
#include "machine/sm90/multiply.cuh"
#include "machine/sm90/pack.hpp"
#include "numerics/exponential.hpp"

// What both epilogues share: the block's header in shared memory, which rows a thread's sums belong to, and their
// exponents.
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

  MEGAMOE_DEVICE SourceSlot source(int token) const {
    const uint2 words = ptx::load_shared_u32x2(slot + offsetof(Slot, source) + token * 8);
    return {words.x, words.y};
  }
  MEGAMOE_DEVICE float routing_weight(int token) const {
    return ptx::load_shared_f32(slot + offsetof(Slot, routing_weight) + token * 4);
  }
  // Of an even token and the one after it.
  MEGAMOE_DEVICE float2 routing_weights(int token) const {
    return ptx::load_shared_f32x2(slot + offsetof(Slot, routing_weight) + token * 4);
  }
  MEGAMOE_DEVICE int2 exponents(int token) const {
    const uint2 words = ptx::load_shared_u32x2(slot + offsetof(Slot, exponent) + token * 4);
    return make_int2(static_cast<int>(words.x), static_cast<int>(words.y));
  }
  // Of a weight row of the block. A NaN row makes every output NaN.
  MEGAMOE_DEVICE PowerPair base_power(int row) const {
    const int base = ptx::load_shared_s16(slot + offsetof(Slot, bases) + row * 2);
    PowerPair power(base == kNanBase ? 0 : base);
    if (base == kNanBase) power.first = __int_as_float(0x7FC00000);
    return power;
  }
  MEGAMOE_DEVICE bool is_filled() const {
    return ptx::load_shared_u32(slot + offsetof(Slot, is_filled)) != 0;
  }
};

// Everything an epilogue works on.
template <Plan kPlan>
struct BlockWork {
  const Context<kPlan>& here;
  FedBlock block;
  BlockHeader<kPlan> header;
  MathPlace place;

  // The upper of this thread's two rows of a slab, counted in the block; the other is 8 below.
  MEGAMOE_DEVICE int upper_row(int slab) const {
    return slab * kSlabRows + place.warp() * 16 + place.lane() / 4;
  }
  // The token of sum[4j + i] and of activation 2j + i.
  MEGAMOE_DEVICE int token_of(int t) const { return t / 2 * 8 + place.lane() % 4 * 2 + t % 2; }
};

}  // namespace megamoe::sm90
