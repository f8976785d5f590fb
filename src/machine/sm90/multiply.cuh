#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "machine/cuda/pipe.cuh"
#include "machine/sm90/context.cuh"
#include "machine/sm90/decode.cuh"
#include "machine/sm90/descriptor.hpp"
#include "machine/sm90/shared.hpp"
#include "machine/sm90/wgmma.cuh"
#include "protocol/schedule.hpp"

// The main loop: one warpgroup's 64 weight rows times all tokens of the tile, over all of K. Sums
// come out in wgmma's order: sum[4j + i] is row lane/4 (i = 0, 1) or the row 8 below (i = 2, 3) of
// token 8j + 2 * (lane % 4) + i % 2.
//
// Numbers (the same for every plan): kFloat8 starts a new sum in the tensor core every 128 of K and
// adds it in fp32; kBfloat16 lets the tensor core add over all of K.
namespace megamoe::sm90 {

// Which thread of its warpgroup, and which warpgroup of the CTA's.
struct MathPlace {
  int warpgroup;
  int thread;  // in the warpgroup

  MEGAMOE_DEVICE int warp() const { return thread / kWarpThreads; }
  MEGAMOE_DEVICE int lane() const { return thread % kWarpThreads; }
};

// `kTokens`: of the tile, the first ones that are multiplied; the others' sums are left alone.
template <Plan kPlan, int kTokens>
class Multiply {
 public:
  static constexpr int kSums = kTokens / 2;
  static constexpr bool kPromotes = kPlan.operands == Operands::kFloat8;

  MEGAMOE_DEVICE Multiply(TileConsumer<kPlan>& tiles, const MathPlace& place)
      : tiles_(tiles), weights_(place.warpgroup, place.thread), is_releaser_(place.lane() == 0) {}

  // `steps` >= 1 stages into `sum`, from zero.
  MEGAMOE_DEVICE void run(int steps, float (&sum)[kPlan.block_m / 2]) {
    MEGAMOE_UNROLL
    for (int i = 0; i < kSums; ++i)
      sum[i] = 0.0F;
    if constexpr (kPlan.decodes_ahead())
      run_ahead(steps, sum);
    else
      run_in_turn(steps, sum);
  }

 private:
  static constexpr int kWords = operand_words(kPlan.operands);
  static constexpr int kPartials = kPromotes ? kSums : 1;
  // What comes of the next step's packed weights while this one multiplies: all, or where registers
  // are scarce half.
  static constexpr bool kFetchesAll = !kPromotes || kTokens <= 128;
  using Ahead = std::conditional_t<kFetchesAll, PackedWeights, HalfFetched>;
  using Mma = Wgmma<kPlan.operands, kTokens>;

  // One step's wgmmas, as one group: into `partial` from zero, or on top of `sum`.
  static MEGAMOE_DEVICE void issue(std::uint32_t stage,
                                   const std::uint32_t* operand,
                                   float* partial,
                                   float* sum) {
    const std::uint32_t tokens = tile_descriptor_low(stage);
    wgmma_fence();
    if constexpr (kPromotes) {
      Mma::start(partial, operand, tokens);
      MEGAMOE_UNROLL
      for (int i = 1; i < 4; ++i)
        Mma::add(partial, operand + 4 * i, tokens + kDescriptorNextK * i);
    } else {
      MEGAMOE_UNROLL
      for (int i = 0; i < 8; ++i)
        Mma::add(
            sum,
            operand + 4 * i,
            tokens + descriptor_next_panel(kPlan.block_m) * (i / 4) + kDescriptorNextK * (i % 4));
    }
    wgmma_commit();
  }

  // Waits for the step in flight, whose sums join the fp32 ones.
  static MEGAMOE_DEVICE void finish(float* partial, float* sum) {
    wgmma_wait<0>();
    MEGAMOE_UNROLL
    for (int i = 0; i < kSums; ++i)
      ptx::pin(kPromotes ? partial[i] : sum[i]);
    if constexpr (kPromotes) {
      MEGAMOE_UNROLL
      for (int i = 0; i < kSums; ++i)
        sum[i] += partial[i];
    }
  }

  MEGAMOE_DEVICE void release(std::uint32_t stage) const {
    TileConsumer<kPlan>::release(stage, is_releaser_);
  }

  // Many tokens: the other warpgroup multiplies while this one decodes and promotes.
  MEGAMOE_DEVICE void run_in_turn(int steps, float* sum) {
    float partial[kPartials];
    std::uint32_t operand[kWords];
    std::uint32_t stage = tiles_.wait();
    Ahead ahead;
    weights_.fetch(stage, ahead);
    MEGAMOE_NO_UNROLL
    for (int left = steps; left > 0; --left) {
      decode<kPlan.operands>(weights_.whole(stage, ahead), operand);
      issue(stage, operand, partial, sum);
      const std::uint32_t current = stage;
      if (left > 1) {
        stage = tiles_.wait();
        weights_.fetch(stage, ahead);
      }
      finish(partial, sum);
      release(current);
    }
  }

  // Few tokens: memory is the limit, if nothing else waits. While a step multiplies, the next one's
  // weights are fetched and decoded into the other operand.
  MEGAMOE_DEVICE void run_ahead(int steps, float* sum) {
    std::uint32_t operand[2][kWords];
    std::uint32_t stage = tiles_.wait();
    fetch_and_decode(weights_, stage, operand[0]);
    MEGAMOE_NO_UNROLL
    for (int left = steps; left > 0; left -= 2) {
      step_ahead(left > 1, stage, operand[0], operand[1], sum);
      if (left > 1) step_ahead(left > 2, stage, operand[1], operand[0], sum);
    }
  }

  // Multiplies `stage`, decoded in `operand`, and leaves the one after it in `next`, if there is
  // one.
  MEGAMOE_DEVICE void step_ahead(bool goes_on,
                                 std::uint32_t& stage,
                                 const std::uint32_t* operand,
                                 std::uint32_t* next,
                                 float* sum) {
    float partial[kPartials];
    issue(stage, operand, partial, sum);
    const std::uint32_t current = stage;
    if (goes_on) {
      stage = tiles_.wait();
      fetch_and_decode(weights_, stage, next);
    }
    finish(partial, sum);
    release(current);
  }

  TileConsumer<kPlan>& tiles_;
  SlabPlace<kPlan> weights_;
  bool is_releaser_;
};

}  // namespace megamoe::sm90
