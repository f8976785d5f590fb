#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "machine/cuda/run_options.hpp"
#include "machine/sm90/pool_tile.hpp"
#include "machine/sm90/weight_layout.hpp"
#include "protocol/call.hpp"

namespace megamoe::sm90 {

// One linear's packed weights on the device, all local experts.
struct LinearWeights {
  const std::byte* codes = nullptr;     // [experts][layout.bytes()]
  const std::int16_t* bases = nullptr;  // [experts][layout.padded_rows()]
  const float* bias = nullptr;          // [experts][rows] in canonical order, or null
};

using KernelArgs = gpu::KernelArguments<LinearWeights>;
static_assert(std::is_trivially_copyable_v<KernelArgs>);

constexpr WeightLayout layout_of(const Problem& problem, Operands operands, Phase phase) {
  if (phase == Phase::kLinear1) return {operands, 2 * problem.intermediate, problem.hidden};
  return {operands, problem.hidden, problem.intermediate};
}

// The machine's rows in the pool. Linear 1: codes, and one exponent. Linear 2: codes, and with
// kFloat8 a scale for each 128 columns.
constexpr PoolFormat pool_format(const Problem& problem, Operands operands) {
  const int steps = ceil_div(problem.intermediate, kStepDepth);
  const bool has_scales = operands == Operands::kFloat8;
  return {.linear1_row_bytes = static_cast<std::uint32_t>(pool_row_bytes(operands, problem.hidden)),
          .linear1_scale_bytes = sizeof(std::int32_t),
          .linear2_row_bytes =
              static_cast<std::uint32_t>(pool_row_bytes(operands, problem.intermediate)),
          .linear2_scale_bytes = has_scales ? static_cast<std::uint32_t>(steps) * 4U : 0U};
}

}  // namespace megamoe::sm90
