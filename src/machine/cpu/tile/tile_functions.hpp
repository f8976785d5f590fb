#pragma once

#include "machine/cpu/tile/tile.hpp"

namespace megamoe::cpu {

// The sums of up to two panels over all of K, for the rows of a tile, into scratch.sums. Rows and
// panels with scales that are not folded get sums without meaning.
struct PanelProduct {
  Panel panels[2];
  int num_panels = 1;
  int k = 0;
  PoolRows rows;
  int num_rows = 0;
};

// What follows the sums of two panels of linear 1: activation and quantising of one group.
struct Linear1Finish {
  const float* sums;  // [num_rows][kSumStride]: 16 gate, 16 up, 16 gate, 16 up
  int num_rows;
  const float* routing_weights;
  const float* gate_bias;  // [32] each, or both null
  const float* up_bias;
  Activation activation;
  MutablePoolRows rows;
  int k;      // width of those rows
  int group;  // which of them is written
};

// What follows the sums of one panel of linear 2: the rounding to bf16.
struct Linear2Finish {
  const float* sums;  // [num_rows][kSumStride], 32 of them
  int num_rows;
  const float* routing_weights;
  const float* bias;  // [32], or null
  Bfloat16* output;
  std::size_t output_stride;
};

// What an instruction set brings.
struct TileFunctions {
  void (*multiply)(const PanelProduct& product, TileScratch& scratch);
  void (*finish_linear1)(const Linear1Finish& finish);
  void (*finish_linear2)(const Linear2Finish& finish);
  void (*store_row)(const std::uint8_t* codes, const std::uint8_t* scales, int k, std::byte* row);
  // Multiplies and adds on registers alone, flops_of_round in each round; what it returns means
  // nothing. The ceiling that `multiply` is held against.
  float (*multiply_registers)(int rounds);
  double flops_of_round;
};

// Null when the set is not compiled in. Says nothing about this computer.
const TileFunctions* functions_of(InstructionSet set);

}  // namespace megamoe::cpu
