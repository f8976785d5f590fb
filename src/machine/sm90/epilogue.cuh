#pragma once

#include <cstdint>

#include "machine/sm90/barriers.cuh"
#include "machine/sm90/context.cuh"
#include "machine/sm90/multiply.cuh"
#include "machine/sm90/pack.hpp"
#include "numerics/exponential.hpp"

// What both epilogues share: which rows a thread's sums belong to, and their exponents.
namespace megamoe::sm90 {

// 2^exponent in two factors, each a normal number: their product may not be one.
struct PowerPair {
  float first, second;

  MEGAMOE_DEVICE explicit PowerPair(int exponent)
      : first(power_of_two(exponent >> 1)), second(power_of_two(exponent - (exponent >> 1))) {}
};

// The two weight rows of a math thread in one slab: 8 apart, as the fragment has them.
struct RowPair {
  int upper;  // packed row of the linear
  PowerPair upper_power{0}, lower_power{0};

  MEGAMOE_DEVICE RowPair(const LinearWeights& weights,
                         const WeightLayout& layout,
                         const Block& block,
                         int slab,
                         const MathPlace& place)
      : upper((block.n * kBlockSlabs + slab) * kSlabRows + place.warp() * 16 + place.lane() / 4) {
    const std::int16_t* bases =
        weights.bases + static_cast<std::int64_t>(block.expert) * layout.padded_rows() + upper;
    upper_power = power_of(bases[0]);
    lower_power = power_of(bases[8]);
  }

 private:
  static MEGAMOE_DEVICE PowerPair power_of(std::int16_t base) {
    PowerPair power(base == kNanBase ? 0 : base);
    if (base == kNanBase) power.first = __int_as_float(0x7FC00000);
    return power;
  }
};

// Everything an epilogue works on.
template <Plan kPlan>
struct BlockWork {
  const Context<kPlan>& here;
  const HeaderSlot<kPlan>& header;
  Block block;
  WeightLayout layout;
  BlockShape shape;
};

}  // namespace megamoe::sm90
