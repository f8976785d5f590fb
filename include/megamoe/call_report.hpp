#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace megamoe {

/// This rank's input, in its symmetric memory: the caller writes the first `num_tokens` rows of
/// each before a forward. Stays valid, at the same addresses, as long as the layer; a call reads it
/// and leaves it as it is. On a GPU machine these are addresses in device memory, to be written by
/// kernels and copies that are ordered before the call; Layer::set_tokens() and its kin copy from
/// host memory on every machine.
struct LayerInputs {
  std::span<std::uint8_t> tokens;        ///< [capacity][hidden] E4M3
  std::span<std::uint8_t> token_scales;  ///< [capacity][hidden / 32] UE8M0
  std::span<float> topk_weights;         ///< [capacity][topk]
  std::span<std::int64_t> topk_ids;      ///< [capacity][topk] global expert; below 0: masked
};

struct ForwardArguments {
  std::int64_t num_tokens = 0;      ///< 0..capacity; other ranks' may differ
  std::uint16_t* output = nullptr;  ///< [num_tokens][hidden] bf16, 16-byte aligned; may be null
                                    ///< when num_tokens is 0. In host memory or, with a GPU
                                    ///< machine, in memory of the rank's card (faster)
};

/// A call that is put on a stream of the caller's, without waiting for it.
struct StreamCall {
  void* stream = nullptr;       ///< a cudaStream_t; null is CUDA's default stream, which ranks that
                                ///< share a card can't have: each needs a stream of its own
  std::int64_t num_tokens = 0;  ///< 0..capacity, unless the next field is given
  /// In memory of the rank's card, read when the call runs: a replayed graph may find other counts
  /// there. A count outside 0..capacity is refused by the call itself, on all ranks.
  const std::int32_t* num_tokens_on_device = nullptr;
  int expected_tokens = 0;  ///< for the plan; 0: the layer's own hint, else num_tokens, or the
                            ///< capacity with a count on the device
  std::uint16_t* output = nullptr;  ///< [capacity or num_tokens][hidden] bf16, 16-byte aligned, in
                                    ///< memory of the rank's card
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

/// Ids past the last expert that a GPU machine met, in all calls since the last look: it treats
/// them as masked. (The CPU machine refuses them before a call.)
struct MaskedIds {
  std::uint32_t count = 0;
  std::int64_t token = 0;  ///< of one of the first
  int slot = 0;
};

/// What one call did on this rank: the last one.
struct CallReport {
  std::vector<std::uint32_t> expert_rows;  ///< [experts_per_rank] rows that this rank's experts got
  PhaseTimes times;
  std::uint64_t bytes_pulled = 0;  ///< from other ranks' memory
  std::uint64_t bytes_pushed = 0;  ///< into other ranks' memory
  int block_m = 0;                 ///< rows of a block in the plan that was used
  MaskedIds masked_ids;
};

/// Equal calls to be timed one by one, for benchmarks.
struct TimedCalls {
  std::int64_t num_tokens = 0;  ///< the first ones of the inputs
  int calls = 20;
  int warm_up = 2;             ///< calls before these that are not timed
  bool flushes_caches = true;  ///< GPU: before each, so that weights come from memory
};

struct CallTimings {
  /// By call. GPU: between CUDA events right before and behind the launch. Ranks begin a call
  /// together but for microseconds, so a call's time is the least of the ranks'.
  std::vector<double> microseconds;
  CallReport last;
};

}  // namespace megamoe
