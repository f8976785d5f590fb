#pragma once

#include <cstdint>

#include "machine/sm90/operands.hpp"

// Where one weight lies in a packed slab (64 rows x 128 of K), and which place along K of a token
// row meets it.
//
// wgmma fixes which thread holds which element of its register operand; K may be permuted as long
// as both operands agree. The permutation here gives all 32 values that a thread holds of one row
// to one group of 32: lane % 4 is the group, so that a thread decodes with one exponent a row.
//
// A slab is 4096 bytes of codes and then the exponents of its 64 x 4 groups:
//   codes      warp w, lane l reads two 16-byte vectors at ((2w + v) * 32 + l) * 16; word 2c is row
//   16w + l/4,
//              word 2c + 1 the row 8 below, both of chunk c: values 8c .. 8c + 7 of group l % 4
//   exponents  kFloat8: one byte a thread, low nibble the upper row; kBfloat16: two bytes, upper
//   row first
namespace megamoe::sm90 {

inline constexpr int kSlabCodeBytes = kSlabRows * kStepDepth / 2;

constexpr int slab_exponent_bytes(Operands operands) {
  return operands == Operands::kFloat8 ? kSlabRows * kGroupsPerStep / 2
                                       : kSlabRows * kGroupsPerStep;
}
constexpr int slab_bytes(Operands operands) {
  return kSlabCodeBytes + slab_exponent_bytes(operands);
}

// A code's place: the 32-bit word, where its three magnitude bits start, and its sign bit.
struct CodePlace {
  int word_byte;
  int magnitude_bit;
  int sign_bit;
};

// One group's exponent: the byte in the slab, and the bit in it where the field starts.
struct ExponentPlace {
  int byte;
  int bit;
};

// row 0..63 and k 0..127 (before the permutation) of a slab.
constexpr CodePlace code_place(Operands operands, int row, int k) {
  const int warp = row / 16;
  const int is_lower = row % 16 / 8;
  const int lane = row % 8 * 4 + k / kGroup;
  const int chunk = k % kGroup / 8;
  const int value = k % 8;
  const int word = 2 * chunk + is_lower;
  const int word_byte = ((warp * 2 + word / 4) * 32 + lane) * 16 + word % 4 * 4;
  if (operands == Operands::kFloat8) {
    // Magnitudes are byte selectors of `prmt`, four a half; the signs lie where a mask puts them on
    // the bytes.
    const int half = value / 4;
    const int i = value % 4;
    return {word_byte, half * 16 + 4 * i, 8 * i + (half == 0 ? 7 : 3)};
  }
  // Pairs of neighbours in the two halves of the word, so that a shift and a mask give two bf16.
  const int nibble = (value % 2 == 0 ? 12 : 28) - 4 * (value / 2);
  return {word_byte, nibble, nibble + 3};
}

constexpr ExponentPlace exponent_place(Operands operands, int row, int group) {
  const int warp = row / 16;
  const int is_lower = row % 16 / 8;
  const int lane = row % 8 * 4 + group;
  if (operands == Operands::kFloat8) return {kSlabCodeBytes + warp * 32 + lane, is_lower * 4};
  return {kSlabCodeBytes + (warp * 32 + lane) * 2 + is_lower, 0};
}

// Where value k of a token row goes inside its 128: the K position at which wgmma meets weight k.
constexpr int token_position(Operands operands, int k) {
  const int group = k / kGroup;
  const int chunk = k % kGroup / 8;
  const int value = k % 8;
  if (operands == Operands::kFloat8) return chunk * 32 + value / 4 * 16 + group * 4 + value % 4;
  const int pair = value / 2;
  return (2 * chunk + pair / 2) * 16 + pair % 2 * 8 + group * 2 + value % 2;
}

}  // namespace megamoe::sm90
