#pragma once

#include <cstdint>

#include "machine/cuda/ptx.cuh"
#include "machine/sm90/pack.hpp"
#include "machine/sm90/shared.hpp"

// From packed E2M1 in shared memory to wgmma's register operand.
namespace megamoe::sm90 {

// One thread's share of a slab: 32 codes of each of two rows, and the two exponent fields.
struct PackedWeights {
  uint4 first, second;
  std::uint32_t exponents;
};

// The first half of it: what is fetched ahead where registers are scarce.
struct HalfFetched {
  uint4 first;
  std::uint32_t exponents;
};

// Where a math thread finds its share in a stage.
template <Plan kPlan>
struct SlabPlace {
  std::uint32_t codes;
  std::uint32_t exponents;

  MEGAMOE_DEVICE SlabPlace(int warpgroup, int thread) {
    constexpr int kBytes = slab_bytes(kPlan.operands);
    constexpr int kExponentBytes = slab_exponent_bytes(kPlan.operands) / kWarpgroupThreads;
    const int slab = static_cast<int>(offsetof(Stage<kPlan>, weights)) + warpgroup * kBytes;
    codes = slab + thread / 32 * 1024 + thread % 32 * 16;
    exponents = slab + kSlabCodeBytes + thread * kExponentBytes;
    if constexpr (kPlan.block_m <= 32 || kPlan.block_m > 128) return;
    // Where registers suffice the two are kept, and not computed again in every step.
    codes = ptx::opaque(codes);
    exponents = ptx::opaque(exponents);
  }

  MEGAMOE_DEVICE void fetch(std::uint32_t stage, PackedWeights& packed) const {
    packed.first = first_of(stage);
    packed.second = second_of(stage);
    packed.exponents = exponents_of(stage);
  }

  MEGAMOE_DEVICE void fetch(std::uint32_t stage, HalfFetched& half) const {
    half.first = first_of(stage);
    half.exponents = exponents_of(stage);
  }

  // All of the stage, whatever of it was fetched. The rest's way hides behind the decoding of what
  // has come.
  static MEGAMOE_DEVICE const PackedWeights& whole(std::uint32_t, const PackedWeights& ahead) {
    return ahead;
  }
  MEGAMOE_DEVICE PackedWeights whole(std::uint32_t stage, const HalfFetched& ahead) const {
    return {ahead.first, second_of(stage), ahead.exponents};
  }

  MEGAMOE_DEVICE uint4 first_of(std::uint32_t stage) const {
    return ptx::load_shared_u32x4(stage + codes);
  }
  MEGAMOE_DEVICE uint4 second_of(std::uint32_t stage) const {
    return ptx::load_shared_u32x4(stage + codes + 512);
  }
  MEGAMOE_DEVICE std::uint32_t exponents_of(std::uint32_t stage) const {
    if constexpr (kPlan.operands == Operands::kFloat8)
      return ptx::load_shared_u8(stage + exponents);
    else
      return ptx::load_shared_u16(stage + exponents);
  }
};

// E4M3 of the eight magnitudes at exponent field 0 (times 2^-5), two registers of bytes; another
// field adds to the exponent of each but the zero.
struct MagnitudeTable {
  std::uint32_t low, high;

  MEGAMOE_DEVICE explicit MagnitudeTable(std::uint32_t field)
      : low(0x14100800U + field * 0x08080800U), high(0x24201C18U + field * 0x08080808U) {}
};

// Eight codes: `upper` the first four of the thread's group, `lower` the next four.
MEGAMOE_DEVICE void decode_float8(std::uint32_t word,
                                  const MagnitudeTable& table,
                                  std::uint32_t& upper,
                                  std::uint32_t& lower) {
  const std::uint32_t selectors = ptx::whole_and(word, 0x77777777U);
  upper = ptx::permute(table.low, table.high, selectors) | (word & 0x80808080U);
  lower = ptx::permute(table.low, table.high, selectors >> 16) | ((word << 4) & 0x80808080U);
}

// Two of a word's eight codes as bf16: the magnitude's three bits as exponent and mantissa of a
// tiny number, which one multiplication brings to its size.
template <int kPair>
MEGAMOE_DEVICE std::uint32_t decode_bfloat16(std::uint32_t word, std::uint32_t factor) {
  constexpr int kUp = 4 * kPair - 6;
  const std::uint32_t moved = kUp < 0 ? word >> (kUp < 0 ? -kUp : 0) : word << (kUp < 0 ? 0 : kUp);
  const std::uint32_t tiny = (moved & 0x01C001C0U) | ((word << (4 * kPair)) & 0x80008000U);
  return ptx::multiply_bfloat16x2(tiny, factor);
}

// Registers of the operand for one step: wgmma k-steps of four registers each (upper row, lower
// row, and again for the second half of K).
constexpr int operand_words(Operands operands) {
  return operands == Operands::kFloat8 ? 16 : 32;
}

// Half of a thread's share, two of its four chunks: words of the upper and the lower row in turn.
MEGAMOE_DEVICE void decode_float8(const uint4& words,
                                  const MagnitudeTable& upper,
                                  const MagnitudeTable& lower,
                                  std::uint32_t* k_steps) {
  decode_float8(words.x, upper, k_steps[0], k_steps[2]);
  decode_float8(words.y, lower, k_steps[1], k_steps[3]);
  decode_float8(words.z, upper, k_steps[4], k_steps[6]);
  decode_float8(words.w, lower, k_steps[5], k_steps[7]);
}

MEGAMOE_DEVICE void decode_float8(const PackedWeights& packed, std::uint32_t* operand) {
  const MagnitudeTable upper(packed.exponents & 0xF);
  const MagnitudeTable lower(packed.exponents >> 4);
  decode_float8(packed.first, upper, lower, operand);
  decode_float8(packed.second, upper, lower, operand + 8);
}

MEGAMOE_DEVICE void decode_bfloat16(const PackedWeights& packed, std::uint32_t* operand) {
  constexpr std::uint32_t kBothHalves = 0x00800080U;  // the exponent's place in two bf16
  const std::uint32_t factors[2] = {(packed.exponents & 0xFF) * kBothHalves,
                                    (packed.exponents >> 8) * kBothHalves};
  const std::uint32_t words[8] = {packed.first.x,
                                  packed.first.y,
                                  packed.first.z,
                                  packed.first.w,
                                  packed.second.x,
                                  packed.second.y,
                                  packed.second.z,
                                  packed.second.w};
  MEGAMOE_UNROLL
  for (int w = 0; w < 8; ++w) {
    const int row = w % 2;
    std::uint32_t* k_steps = operand + w / 2 * 8;
    k_steps[row] = decode_bfloat16<0>(words[w], factors[row]);
    k_steps[2 + row] = decode_bfloat16<1>(words[w], factors[row]);
    k_steps[4 + row] = decode_bfloat16<2>(words[w], factors[row]);
    k_steps[6 + row] = decode_bfloat16<3>(words[w], factors[row]);
  }
}

template <Operands kOperands>
MEGAMOE_DEVICE void decode(const PackedWeights& packed, std::uint32_t* operand) {
  if constexpr (kOperands == Operands::kFloat8)
    decode_float8(packed, operand);
  else
    decode_bfloat16(packed, operand);
}

// Fetches and decodes by halves: fewer packed words are live at once, where registers are scarce.
template <Plan kPlan>
MEGAMOE_DEVICE void fetch_and_decode(const SlabPlace<kPlan>& place,
                                     std::uint32_t stage,
                                     std::uint32_t* operand) {
  static_assert(kPlan.operands == Operands::kFloat8);
  const std::uint32_t exponents = place.exponents_of(stage);
  const MagnitudeTable upper(exponents & 0xF);
  const MagnitudeTable lower(exponents >> 4);
  decode_float8(place.first_of(stage), upper, lower, operand);
  decode_float8(place.second_of(stage), upper, lower, operand + 8);
}

}  // namespace megamoe::sm90
