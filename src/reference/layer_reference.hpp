#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "files/weight_source.hpp"
#include "megamoe/problem.hpp"
#include "megamoe/weights.hpp"
#include "numerics/bfloat16.hpp"

namespace megamoe {

// The tokens of one call, of all ranks in rank order. Borrowed, row-major; T is num_tokens.
struct TokenView {
  std::int64_t num_tokens = 0;
  const std::uint8_t* codes = nullptr;     // [T, H] E4M3
  const std::uint8_t* scales = nullptr;    // [T, H/32] UE8M0
  const std::int64_t* ids = nullptr;       // [T, K]; negative: masked
  const float* routing_weights = nullptr;  // [T, K]
};

// What lies between the steps, so that a machine can be compared with them one by one. Row
// token * K + k; the rows of masked slots are zero.
struct ReferenceStages {
  std::vector<double> linear1;  // [T * K, 2I] accumulators, before bias and rounding; gate, then up
  std::vector<std::uint8_t> codes;   // [T * K, I] the requantised activation
  std::vector<std::uint8_t> scales;  // [T * K, I/32]
  std::vector<Bfloat16> slots;       // [T * K, H] what combine sums
};

struct ReferenceOutput {
  std::vector<Bfloat16> y;            // [T, H]
  std::vector<float> slot_magnitude;  // [T, H] sum over valid k of |slot|: the judge's yardstick
  std::vector<std::int64_t> tokens_per_expert;  // [E] valid slots, duplicates counted
  ReferenceStages stages;                       // empty unless asked for
};

struct ReferenceOptions {
  int num_threads = 0;  // 0: as many as the computer has
  bool keep_stages = false;
  std::int64_t slot_bytes = std::int64_t{256}
                            << 20;  // tokens go through in portions whose slots fit
  // Told now and then, by the caller's thread: (token, k) pairs done, and of how many.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

// The whole layer without ranks, tiles, pools or fusion: token by token and expert by expert, in
// fp64 between the roundings that every machine must do, and by arithmetic of its own; it shares
// nothing with a machine but the number formats. `weights` views all E experts of the problem.
//
// Throws kInvalidArgument for an id >= E, naming token, slot and id, and for biases where the
// problem says that there are none, or the reverse.
ReferenceOutput reference_forward(const Problem& problem,
                                  const WeightView& weights,
                                  const TokenView& tokens,
                                  const ReferenceOptions& options = {});

// The same with weights that are read expert by expert.
ReferenceOutput reference_forward(const Problem& problem,
                                  const WeightSource& weights,
                                  const TokenView& tokens,
                                  const ReferenceOptions& options = {});

}  // namespace megamoe
