#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace megamoe {

/// This rank's input, in its symmetric memory: the caller writes the first `num_tokens` rows of
/// each before a forward. Stays valid, at the same addresses, as long as the layer; a call reads it
/// and leaves it as it is.
struct LayerInputs {
  std::span<std::uint8_t> tokens;        ///< [capacity][hidden] E4M3
  std::span<std::uint8_t> token_scales;  ///< [capacity][hidden / 32] UE8M0
  std::span<float> topk_weights;         ///< [capacity][topk]
  std::span<std::int64_t> topk_ids;      ///< [capacity][topk] global expert; below 0: masked
};

struct ForwardArguments {
  std::int64_t num_tokens = 0;      ///< 0..capacity; other ranks' may differ
  std::uint16_t* output = nullptr;  ///< [num_tokens][hidden] bf16, 16-byte aligned; may be null
                                    ///< when num_tokens is 0
};

/// Where the time of a call went, as this rank's first worker saw it; milliseconds.
struct PhaseTimes {
  double route = 0;    ///< counts, source slots and barrier 1
  double compute = 0;  ///< pulls, linear 1 and linear 2
  double meet = 0;     ///< waiting for the other workers and ranks at barrier 2
  double combine = 0;  ///< sums of this worker's tokens
  double finish = 0;   ///< clean-up and barrier 3
  double total = 0;
};

/// What one call did on this rank.
struct CallReport {
  std::vector<std::uint32_t> expert_rows;  ///< [experts_per_rank] rows that this rank's experts got
  PhaseTimes times;
  std::uint64_t bytes_pulled = 0;  ///< from other ranks' memory
  std::uint64_t bytes_pushed = 0;  ///< into other ranks' memory
  int block_m = 0;                 ///< rows of a block in the plan that was used
};

}  // namespace megamoe
