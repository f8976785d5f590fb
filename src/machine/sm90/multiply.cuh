#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cuda/pipe.cuh"
#include "machine/sm90/context.cuh"
#include "machine/sm90/decode.cuh"
#include "machine/sm90/descriptor.hpp"
#include "machine/sm90/shared.hpp"
#include "machine/sm90/wgmma.cuh"
#include "protocol/schedule.hpp"

// The main loop: one warpgroup's 64 weight rows times all tokens of the tile, over all of K. Sums come out in
// wgmma's order: sum[4j + i] is row lane/4 (i = 0, 1) or the row 8 below (i = 2, 3) of token
// 8j + 2 * (lane % 4) + i % 2.
//
// Numbers (the same for every plan): kFloat8 starts a new sum in the tensor core every 128 of K and adds it in
// fp32, with the token's scale for linear 2; kBfloat16 lets the tensor core add over all of K.
namespace megamoe::sm90 {

// Which thread of its warpgroup, and which warpgroup of the CTA's.
struct MathPlace {
  int warpgroup;
  int thread;  // in the warpgroup

  MEGAMOE_DEVICE int warp() const { return thread / kWarpThreads; }
  MEGAMOE_DEVICE int lane() const { return thread % kWarpThreads; }
};

template <Plan kPlan, Phase kPhase>
class Multiply {
 public:
  static constexpr int kTokens = kPlan.block_m;
  static constexpr int kSums = kTokens / 2;
  static constexpr bool kPromotes = kPlan.operands == Operands::kFloat8;
  static constexpr bool kScales = kPromotes && kPhase == Phase::kLinear2;

  MEGAMOE_DEVICE Multiply(TileConsumer<kPlan>& tiles, const MathPlace& place)
      : tiles_(tiles),
        weights_(place.warpgroup, place.thread),
        scales_(offsetof(Stage<kPlan>, token_scales) +
                static_cast<std::uint32_t>(place.lane() % 4) * (kTokens % 16 == 0 ? 16 : 8)),
        is_releaser_(place.lane() == 0) {}

  // `steps` >= 1 stages into `sum`, from zero.
  MEGAMOE_DEVICE void run(int steps, float (&sum)[kSums]) {
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
  using Mma = Wgmma<kPlan.operands, kTokens>;

  // One step's wgmmas as one group: into `partial` from zero, or on top of `sum`.
  static MEGAMOE_DEVICE void issue(std::uint32_t stage,
                                   const std::uint32_t* operand,
                                   float* partial,
                                   float* sum) {
    const std::uint64_t tokens = tile_descriptor(stage);
    wgmma_fence();
    if constexpr (kPromotes) {
      Mma::start(partial, operand, tokens);
      MEGAMOE_UNROLL
      for (int i = 1; i < 4; ++i)
        Mma::add(partial, operand + 4 * i, tokens + kDescriptorNextK * i);
    } else {
      MEGAMOE_UNROLL
      for (int i = 0; i < 8; ++i)
        Mma::add(sum,
                 operand + 4 * i,
                 tokens + descriptor_next_panel(kTokens) * (i / 4) + kDescriptorNextK * (i % 4));
    }
    wgmma_commit();
  }

  // A finished partial sum joins the fp32 one.
  MEGAMOE_DEVICE void promote(std::uint32_t stage, float* partial, float* sum) const {
    MEGAMOE_UNROLL
    for (int i = 0; i < kSums; ++i)
      ptx::pin(partial[i]);
    if constexpr (!kScales) {
      MEGAMOE_UNROLL
      for (int i = 0; i < kSums; ++i)
        sum[i] += partial[i];
    } else if constexpr (kTokens % 16 != 0) {
      const float2 scale = ptx::load_shared_f32x2(stage + scales_);
      promote_eight(scale.x, scale.y, partial, sum);
    } else {
      MEGAMOE_UNROLL
      for (int i = 0; i < kTokens / 16; ++i) {
        const float4 scale = ptx::load_shared_f32x4(stage + scales_ + i * 64);
        promote_eight(scale.x, scale.y, partial + 8 * i, sum + 8 * i);
        promote_eight(scale.z, scale.w, partial + 8 * i + 4, sum + 8 * i + 4);
      }
    }
  }
  static MEGAMOE_DEVICE void promote_eight(float even, float odd, const float* partial, float* sum) {
    sum[0] = fmaf(even, partial[0], sum[0]);
    sum[1] = fmaf(odd, partial[1], sum[1]);
    sum[2] = fmaf(even, partial[2], sum[2]);
    sum[3] = fmaf(odd, partial[3], sum[3]);
  }

  MEGAMOE_DEVICE void release(std::uint32_t stage) const {
    TileConsumer<kPlan>::release(stage, is_releaser_);
  }

  // Many tokens: the other warpgroup multiplies while this one decodes and promotes.
  MEGAMOE_DEVICE void run_in_turn(int steps, float (&sum)[kSums]) {
    float partial[kPartials];
    std::uint32_t operand[kWords];
    std::uint32_t stage = tiles_.wait();
    PackedWeights packed = weights_.fetch(stage);
    MEGAMOE_NO_UNROLL
    for (int left = steps; left > 0; --left) {
      decode<kPlan.operands>(packed, operand);
      issue(stage, operand, partial, sum);
      const std::uint32_t done = stage;
      if (left > 1) {
        stage = tiles_.wait();
        packed = weights_.fetch(stage);
      }
      wgmma_wait<0>();
      finish(done, partial, sum);
    }
  }

  MEGAMOE_DEVICE void finish(std::uint32_t stage, float* partial, float* sum) const {
    if constexpr (kPromotes) {
      promote(stage, partial, sum);
    } else {
      MEGAMOE_UNROLL
      for (int i = 0; i < kSums; ++i)
        ptx::pin(sum[i]);
    }
    release(stage);
  }

  // Few tokens: memory is the limit, if nothing else waits. While a step multiplies, the next one's weights are
  // fetched and decoded into the other operand; the step before is promoted last.
  MEGAMOE_DEVICE void run_ahead(int steps, float (&sum)[kSums]) {
    std::uint32_t operand[2][kWords];
    std::uint32_t stage = tiles_.wait();
    decode<kPlan.operands>(weights_.fetch(stage), operand[0]);
    int left = steps;
    MEGAMOE_NO_UNROLL
    for (; left >= kUnrolled; left -= kUnrolled)
      steps_ahead(left > kUnrolled, stage, operand, sum);
    MEGAMOE_NO_UNROLL
    for (; left > 0; --left)
      last_step(left > 1, stage, operand[0], sum);
  }

  // One of the up to three steps that no unrolled run takes; nothing overlaps, since a second operand that
  // is then moved to the first would be merged with it, and wgmma serialised.
  MEGAMOE_DEVICE void last_step(bool goes_on,
                                std::uint32_t& stage,
                                std::uint32_t* operand,
                                float* sum) {
    float partial[kPartials];
    issue(stage, operand, partial, sum);
    const std::uint32_t done = stage;
    if (goes_on) stage = tiles_.wait();
    const PackedWeights packed = weights_.fetch(stage);
    wgmma_wait<0>();
    finish(done, partial, sum);
    decode<kPlan.operands>(packed, operand);
  }

  // `operand[0]` holds `stage` decoded when this begins, and the stage after the last when it ends, if any.
  // An even number of steps, so that this is the same register set.
  MEGAMOE_DEVICE void steps_ahead(bool goes_on,
                                  std::uint32_t& stage,
                                  std::uint32_t (&operand)[2][kWords],
                                  float (&sum)[kSums]) {
    float partial[kInFlight][kPartials];
    std::uint32_t before = stage;
    MEGAMOE_UNROLL
    for (int j = 0; j < kUnrolled; ++j) {
      issue(stage, operand[j % 2], partial[j % kInFlight], sum);
      const std::uint32_t current = stage;
      if (j + 1 < kUnrolled || goes_on) stage = tiles_.wait();
      const PackedWeights packed = weights_.fetch(stage);
      decode<kPlan.operands>(packed, operand[(j + 1) % 2]);
      if constexpr (kInFlight == 1) {
        wgmma_wait<0>();
        finish(current, partial[0], sum);
      } else if (j > 0) {
        wgmma_wait<1>();
        if constexpr (kPromotes) promote(before, partial[(j - 1) % 2], sum);
        release(before);
      }
      before = current;
    }
    if constexpr (kInFlight == 2) {
      wgmma_wait<0>();
      finish(before, partial[(kUnrolled - 1) % 2], sum);
    }
  }

  // Steps whose wgmmas may be in flight together: two while their partial sums fit the registers.
  static constexpr int kInFlight = kTokens <= 16 ? 2 : 1;
  static constexpr int kUnrolled = 2;  // more need more registers than a warp has

  TileConsumer<kPlan>& tiles_;
  SlabPlace<kPlan> weights_;
  std::uint32_t scales_;
  bool is_releaser_;
};

}  // namespace megamoe::sm90
