#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "machine/cuda/run_options.hpp"
#include "machine/sm100/weight_layout.hpp"
#include "protocol/call.hpp"

namespace megamoe::sm100 {

// A CUtensorMap: what the copy engine knows of a matrix in memory.
struct alignas(64) TensorMap {
  std::byte opaque[128];
};

// One linear's packed weights on the device, all local experts.
struct LinearWeights {
  TensorMap codes;                    // [experts * padded_rows][padded_depth] of 4 bits
  const std::byte* scales = nullptr;  // [experts][layout.scale_bytes()]
  const float* bias = nullptr;        // [experts][rows] in canonical order, or null
};

using KernelArgs = gpu::KernelArguments<LinearWeights>;
static_assert(std::is_trivially_copyable_v<KernelArgs>);

constexpr WeightLayout layout_of(const Problem& problem, Phase phase) {
  if (phase == Phase::kLinear1) return {2 * problem.intermediate, problem.hidden};
  return {problem.hidden, problem.intermediate};
}

// The machine's rows in the pool: codes, and scales with room for every tile size.
constexpr PoolFormat pool_format(const Problem& problem) {
  const auto bytes = [](int value) { return static_cast<std::uint32_t>(value); };
  return {.linear1_row_bytes = bytes(pool_row_bytes(problem.hidden)),
          .linear1_scale_bytes = bytes(pool_scale_bytes(problem.hidden)),
          .linear2_row_bytes = bytes(pool_row_bytes(problem.intermediate)),
          .linear2_scale_bytes = bytes(pool_scale_bytes(problem.intermediate))};
}

}  // namespace megamoe::sm100
