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

// The machine's rows in the pool. Both linears read codes with one exponent a row. Linear 2's rows
// lie there twice: in front the tiles that it reads, all rows of them, and behind those the
// activations as linear 1 leaves them.
constexpr PoolFormat pool_format(const Problem& problem, Operands operands) {
  const int linear2_tiles = pool_row_bytes(operands, problem.intermediate);
  return {.linear1_row_bytes = static_cast<std::uint32_t>(pool_row_bytes(operands, problem.hidden)),
          .linear1_scale_bytes = sizeof(std::int32_t),
          .linear2_row_bytes = static_cast<std::uint32_t>(
              linear2_tiles + ActivationRow{problem.intermediate}.bytes()),
          .linear2_scale_bytes = sizeof(std::int32_t)};
}

// The ring that a pool of this many rows makes.
constexpr Ring ring_of(const Problem& problem,
                       Operands operands,
                       int block_m,
                       std::int64_t pool_rows) {
  return {.blocks = static_cast<int>(pool_rows / block_m),
          .block_m = block_m,
          .linear1_blocks = layout_of(problem, operands, Phase::kLinear1).blocks(),
          .linear2_blocks = layout_of(problem, operands, Phase::kLinear2).blocks(),
          .linear2_lead = layout_of(problem, operands, Phase::kLinear1).steps() /
                          layout_of(problem, operands, Phase::kLinear2).steps(),
          .settled_rows = block_m};
}

constexpr Sym<std::byte> linear2_tiles(const Call& call, Operands operands, std::int64_t row) {
  const auto bytes =
      static_cast<std::uint64_t>(pool_row_bytes(operands, call.problem.intermediate));
  return call.workspace.linear2_rows.at(static_cast<std::uint64_t>(row) * bytes);
}

constexpr Sym<std::byte> activation_row(const Call& call, Operands operands, std::int64_t row) {
  const auto bytes = static_cast<std::uint64_t>(ActivationRow{call.problem.intermediate}.bytes());
  return linear2_tiles(call, operands, call.workspace.pool_rows)
      .at(static_cast<std::uint64_t>(row) * bytes);
}

}  // namespace megamoe::sm90
