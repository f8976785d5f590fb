#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace megamoe {

inline constexpr std::uint64_t kDefaultTimeoutMs = 60'000;
inline constexpr std::uint64_t kMaxTimeoutMs = 1'000'000'000'000;  ///< some thirty years

/// Symmetric memory that the caller already has (a framework's own): every rank's base address as
/// mapped in this process, by rank, this rank's included. A GPU machine wants device memory: this
/// rank's base on this rank's card, the others' reachable from it. Must outlive the layer.
struct AdoptedMemory {
  std::vector<void*> bases;  ///< empty: the layer allocates for itself; else one a rank, 4096-byte
                             ///< aligned
  std::uint64_t bytes = 0;   ///< of each; Layer::symmetric_bytes() says how many are needed
};

/// How a layer is run. Those marked (same) are part of the configuration that all ranks must share;
/// the others may differ from rank to rank.
struct LayerOptions {
  /// (same) auto, cpu, sm90, sm100 or sm100-emulated. auto is sm90 where the build has it and a
  /// Hopper card is there, unless the ranks are processes or an option of the CPU machine is given;
  /// else cpu. sm100-emulated is for tests: Blackwell's kernels on a Hopper card.
  std::string machine = "auto";
  std::string instruction_set =
      {};           ///< (same) of the CPU machine, by name; empty: the best of this computer
  int workers = 0;  ///< CPU: of this rank; 0: cores / ranks, at least 1
  std::string numerics = {};  ///< (same) fast or exact; empty: what the machine does by default:
                              ///< fast on sm90; the others have exact only
  int device = -1;  ///< GPU: this rank's card, by CUDA's number; -1: the ranks of a process are
                    ///< spread evenly over the cards that it sees
  int num_sms = 0;  ///< GPU: SMs that this rank's calls may take, at least 1, the rest is free for
                    ///< other kernels; 0: an even share of what the card's other ranks leave
  int expected_tokens = 0;     ///< a rank's usual tokens, for the plan; 0: each call's own. A wrong
                               ///< one costs speed, never correctness
  std::int64_t pool_rows = 0;  ///< (same) rows of the ring pool, rounded up to 384; 0: what
                               ///< `memory_budget` allows, at most what any routing can fill
  std::uint64_t memory_budget =
      0;  ///< (same) bytes of symmetric memory of a rank, for the pool's default; 0: no bound
  std::uint64_t timeout_ms = kDefaultTimeoutMs;  ///< of every wait; 0: none
  AdoptedMemory memory = {};
  bool poison = false;  ///< for tests: 0xFF in the symmetric memory that need not be zero, once,
                        ///< and before each call in what that call is to write
};

}  // namespace megamoe
