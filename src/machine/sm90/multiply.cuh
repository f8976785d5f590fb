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

// The main loop: one warpgroup's 64 weight rows times all tokens of the tile, over all of K. Sums
// come out in wgmma's order: sum[4j + i] is row lane/4 (i = 0, 1) or the row 8 below (i = 2, 3) of
// token 8j + 2 * (lane % 4) + i % 2.
//
// Numbers (the same for every plan): kFloat8 starts a new sum in the tensor core every 128 of K and
// adds it in fp32, with the token's scale for linear 2; kBfloat16 lets the tensor core add over all
// of K.
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
    else if constexpr (kPieces > 1)
      run_in_pieces(steps, sum);
    else
      run_in_turn(steps, sum);
  }

 private:
  static constexpr int kWords = operand_words(kPlan.operands);
  // Sums that the tensor core starts anew share registers: many tokens are taken in two pieces, one
  // after the other.
  static constexpr int kPieces = kPromotes && kTokens > 128 ? 2 : 1;
  static constexpr int kPieceTokens = kTokens / kPieces;
  static constexpr int kPieceSums = kPieceTokens / 2;
  static constexpr int kPartials = kPromotes ? kPieceSums : 1;
  using Mma = Wgmma<kPlan.operands, kPieceTokens>;

  // One step's wgmmas for one piece, as one group: into `partial` from zero, or on top of `sum`.
  static MEGAMOE_DEVICE void issue(
      std::uint32_t stage, int piece, const std::uint32_t* operand, float* partial, float* sum) {
    const std::uint32_t tokens =
        tile_descriptor_low(stage + piece * kPieceTokens * static_cast<int>(kSwizzleBytes));
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

  // Waits for the piece in flight, whose sums join the fp32 ones.
  MEGAMOE_DEVICE void finish(std::uint32_t stage, int piece, float* partial, float* sum) const {
    wgmma_wait<0>();
    if constexpr (kPromotes) {
      promote(stage + scales_ + piece * kPieceTokens * 4, partial, sum + piece * kPieceSums);
    } else {
      MEGAMOE_UNROLL
      for (int i = 0; i < kSums; ++i)
        ptx::pin(sum[i]);
    }
  }

  static MEGAMOE_DEVICE void promote(std::uint32_t scales, float* partial, float* sum) {
    MEGAMOE_UNROLL
    for (int i = 0; i < kPieceSums; ++i)
      ptx::pin(partial[i]);
    if constexpr (!kScales) {
      MEGAMOE_UNROLL
      for (int i = 0; i < kPieceSums; ++i)
        sum[i] += partial[i];
    } else if constexpr (kPieceTokens % 16 != 0) {
      const float2 scale = ptx::load_shared_f32x2(scales);
      promote_eight(scale.x, scale.y, partial, sum);
    } else {
      MEGAMOE_UNROLL
      for (int i = 0; i < kPieceTokens / 16; ++i) {
        const float4 scale = ptx::load_shared_f32x4(scales + i * 64);
        promote_eight(scale.x, scale.y, partial + 8 * i, sum + 8 * i);
        promote_eight(scale.z, scale.w, partial + 8 * i + 4, sum + 8 * i + 4);
      }
    }
  }
  static MEGAMOE_DEVICE void promote_eight(float even,
                                           float odd,
                                           const float* partial,
                                           float* sum) {
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
      issue(stage, 0, operand, partial, sum);
      const std::uint32_t current = stage;
      if (left > 1) {
        stage = tiles_.wait();
        packed = weights_.fetch(stage);
      }
      finish(current, 0, partial, sum);
      release(current);
    }
  }

  // Most tokens: as before, in pieces that share the registers of a partial sum; none are left to
  // fetch ahead.
  MEGAMOE_DEVICE void run_in_pieces(int steps, float (&sum)[kSums]) {
    float partial[kPartials];
    std::uint32_t operand[kWords];
    MEGAMOE_NO_UNROLL
    for (int left = steps; left > 0; --left) {
      const std::uint32_t stage = tiles_.wait();
      fetch_and_decode(weights_, stage, operand);
      MEGAMOE_UNROLL
      for (int piece = 0; piece < kPieces; ++piece) {
        issue(stage, piece, operand, partial, sum);
        finish(stage, piece, partial, sum);
      }
      release(stage);
    }
  }

  // Few tokens: memory is the limit, if nothing else waits. While a step multiplies, the next one's
  // weights are fetched and decoded into the other operand.
  MEGAMOE_DEVICE void run_ahead(int steps, float (&sum)[kSums]) {
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
                                 float (&sum)[kSums]) {
    float partial[kPartials];
    issue(stage, 0, operand, partial, sum);
    const std::uint32_t current = stage;
    if (goes_on) {
      stage = tiles_.wait();
      fetch_and_decode(weights_, stage, next);
    }
    finish(current, 0, partial, sum);
    release(current);
  }

  TileConsumer<kPlan>& tiles_;
  SlabPlace<kPlan> weights_;
  std::uint32_t scales_;
  bool is_releaser_;
};

}  // namespace megamoe::sm90
