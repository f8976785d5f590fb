#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace megamoe {

inline constexpr std::uint64_t kDefaultTimeoutMs = 60'000;
inline constexpr std::uint64_t kMaxTimeoutMs = 1'000'000'000'000;  ///< some thirty years

/// Symmetric memory that the caller already has (a framework's own): every rank's base address as
/// mapped in this process, by rank, this rank's included. Must outlive the layer.
struct AdoptedMemory {
  std::vector<void*> bases;  ///< empty: the layer allocates for itself; else one a rank, 4096-byte
                             ///< aligned
  std::uint64_t bytes = 0;   ///< of each; Layer::symmetric_bytes() says how many are needed
};

/// How a layer is run. Those marked (same) are part of the configuration that all ranks must share;
/// the others may differ from rank to rank.
struct LayerOptions {
  std::string machine = "auto";  ///< (same) auto, cpu, sm90 or sm100
  std::string instruction_set =
      {};           ///< (same) of the CPU machine, by name; empty: the best of this computer
  int workers = 0;  ///< of this rank; 0: cores / ranks, at least 1
  int expected_tokens = 0;     ///< a rank's usual tokens, for the plan; 0: each call's own
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
