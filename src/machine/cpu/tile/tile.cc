#include "machine/cpu/tile/tile.hpp"

#include <array>

#include "base/check.hpp"
#include "machine/cpu/tile/tile_functions.hpp"
#include "machine/cpu/tile/wide_product.hpp"

namespace megamoe::cpu {
namespace {

constexpr std::size_t kSumStride = TileScratch::kSumStride;

// Rows of a tile that take the general way, found once per tile.
struct WideRows {
  std::array<bool, kMaxTileRows> is_wide{};
  bool any = false;
};

WideRows find_wide_rows(const PoolRows& rows, int num_rows, int k) {
  WideRows wide;
  for (int row = 0; row < num_rows; ++row) {
    if (has_folded_scales(rows.data + static_cast<std::size_t>(row) * rows.stride, k)) continue;
    wide.is_wide[static_cast<std::size_t>(row)] = true;
    wide.any = true;
  }
  return wide;
}

void multiply(const TileFunctions& functions,
              const PanelProduct& product,
              const WideRows& wide,
              TileScratch& scratch) {
  functions.multiply(product, scratch);
  for (int panel = 0; panel < product.num_panels; ++panel) {
    const bool is_wide_panel = product.panels[panel].header->is_wide != 0;
    if (!wide.any && !is_wide_panel) continue;
    for (int row = 0; row < product.num_rows; ++row) {
      if (!is_wide_panel && !wide.is_wide[static_cast<std::size_t>(row)]) continue;
      const auto at = static_cast<std::size_t>(row);
      multiply_wide(product.panels[panel],
                    product.rows.data + at * product.rows.stride,
                    product.k,
                    scratch.sums + at * kSumStride + panel * kPanelRows);
    }
  }
}

void check_tile(int num_rows, int first_channel, int num_channels, int step, int rows) {
  MEGAMOE_CHECK(num_rows >= 1 && num_rows <= kMaxTileRows);
  MEGAMOE_CHECK(first_channel >= 0 && first_channel % step == 0);
  MEGAMOE_CHECK(num_channels > 0 && num_channels % step == 0);
  MEGAMOE_CHECK(first_channel + num_channels <= rows);
}

}  // namespace

TileKernel::TileKernel(InstructionSet set) : set_(set), functions_(functions_of(set)) {
  require(is_supported(set),
          ErrorCode::kUnsupportedMachine,
          "this computer can't run the instruction set ",
          name(set),
          "; the best that it can run is ",
          name(best_instruction_set()));
}

void TileKernel::store_row(const std::uint8_t* codes,
                           const std::uint8_t* scales,
                           int k,
                           std::byte* row) const {
  functions_->store_row(codes, scales, k, row);
}

void TileKernel::linear1(const Linear1Tile& tile, TileScratch& scratch) const {
  const PackedMatrix& weights = tile.weights;
  check_tile(tile.num_rows, tile.first_channel, tile.num_channels, kLinear1Step, weights.rows);
  const int intermediate = weights.rows / 2;
  const WideRows wide = find_wide_rows(tile.input, tile.num_rows, weights.k);
  const int end = (tile.first_channel + tile.num_channels) / kLinear1Step;
  for (int group = tile.first_channel / kLinear1Step; group < end; ++group) {
    multiply(*functions_,
             {.panels = {panel_of(weights, 2 * group), panel_of(weights, 2 * group + 1)},
              .num_panels = 2,
              .k = weights.k,
              .rows = tile.input,
              .num_rows = tile.num_rows},
             wide,
             scratch);
    const float* gate_bias = tile.bias == nullptr ? nullptr : tile.bias + group * kGroupSize;
    functions_->finish_linear1(
        {.sums = scratch.sums,
         .num_rows = tile.num_rows,
         .routing_weights = tile.routing_weights,
         .gate_bias = gate_bias,
         .up_bias = gate_bias == nullptr ? nullptr : gate_bias + intermediate,
         .activation = tile.activation,
         .rows = tile.output,
         .k = intermediate,
         .group = group});
  }
}

void TileKernel::linear2(const Linear2Tile& tile, TileScratch& scratch) const {
  const PackedMatrix& weights = tile.weights;
  check_tile(tile.num_rows, tile.first_channel, tile.num_channels, kLinear2Step, weights.rows);
  const WideRows wide = find_wide_rows(tile.input, tile.num_rows, weights.k);
  const int first = tile.first_channel / kLinear2Step;
  const int end = first + tile.num_channels / kLinear2Step;
  for (int panel = first; panel < end; panel += 2) {
    const int num_panels = panel + 1 < end ? 2 : 1;
    multiply(*functions_,
             {.panels = {panel_of(weights, panel), panel_of(weights, panel + num_panels - 1)},
              .num_panels = num_panels,
              .k = weights.k,
              .rows = tile.input,
              .num_rows = tile.num_rows},
             wide,
             scratch);
    for (int i = 0; i < num_panels; ++i)
      functions_->finish_linear2(
          {.sums = scratch.sums + i * kPanelRows,
           .num_rows = tile.num_rows,
           .routing_weights = tile.routing_weights,
           .bias = tile.bias == nullptr ? nullptr : tile.bias + (panel + i) * kPanelRows,
           .output = tile.output + (panel + i - first) * kPanelRows,
           .output_stride = tile.output_stride});
  }
}

}  // namespace megamoe::cpu
