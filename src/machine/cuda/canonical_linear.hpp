#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/workspace.hpp"

// Weights as callers give them, seen row by row in the order that both GPU machines pack them in.
namespace megamoe::gpu {

// Linear 1's rows are interleaved by 8 (gate 0-7, up 0-7, gate 8-15, ...): the thread that holds a
// gate in the upper row of its accumulator holds the matching up in the lower one. Packed row ->
// row of [gate; up].
constexpr int gate_up_row(int packed_row, int intermediate) {
  const int column = packed_row / 16 * 8 + packed_row % 8;
  return packed_row % 16 < 8 ? column : intermediate + column;
}
static_assert(gate_up_row(7, 64) == 7 && gate_up_row(8, 64) == 64 && gate_up_row(16, 64) == 8);

// One row in canonical form: two codes a byte, low nibble first; one UE8M0 byte per 32.
struct CanonicalRow {
  std::span<const std::uint8_t> codes;
  std::span<const std::uint8_t> scales;
};

// One expert's linear in canonical form, rows x depth.
struct CanonicalLinear {
  const std::uint8_t* codes = nullptr;   // [rows][depth / 2]
  const std::uint8_t* scales = nullptr;  // [rows][depth / 32]
  bool is_gate_up = false;               // linear 1: rows are interleaved when packed

  // `Layout` has the linear's `rows` and `depth`.
  template <class Layout>
  CanonicalRow row(const Layout& layout, int packed_row) const {
    const int row = is_gate_up ? gate_up_row(packed_row, layout.rows / 2) : packed_row;
    const auto code_bytes = static_cast<std::size_t>(layout.depth / 2);
    const auto scale_bytes = static_cast<std::size_t>(layout.depth / kScaleGroup);
    const auto at = static_cast<std::size_t>(row);
    return {{codes + at * code_bytes, code_bytes}, {scales + at * scale_bytes, scale_bytes}};
  }
};

}  // namespace megamoe::gpu
