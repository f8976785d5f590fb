#include "machine/cpu/tile/tile.hpp"

#include <array>
#include <span>

#include "base/check.hpp"
#include "machine/cpu/tile/tile_functions.hpp"
#include "machine/cpu/tile/wide_product.hpp"

namespace megamoe::cpu {
namespace {

// A selection of a tile's rows.
class Selection {
 public:
  void add(int row) { rows_[static_cast<std::size_t>(size_++)] = row; }
  std::span<const int> rows() const { return {rows_.data(), static_cast<std::size_t>(size_)}; }

 private:
  std::array<int, kMaxTileRows> rows_;
  int size_ = 0;
};

// The rows that go the general way whatever the weights, found once per tile; and all rows, for the
// panels that do whatever the row.
struct WideRows {
  Selection wide;
  Selection all;

  WideRows(const PoolRows& rows, int num_rows, int k) {
    for (int row = 0; row < num_rows; ++row) {
      all.add(row);
      if (!has_folded_scales(rows.data + static_cast<std::size_t>(row) * rows.stride, k))
        wide.add(row);
    }
  }
};

void multiply(const TileFunctions& functions,
              const PanelProduct& product,
              const WideRows& wide,
              TileScratch& scratch) {
  functions.multiply(product, scratch);
  for (int index = 0; index < product.num_panels; ++index) {
    const Panel& panel = product.panels[index];
    multiply_wide({.panel = panel,
                   .k = product.k,
                   .rows = product.rows,
                   .wanted = panel.header->is_wide != 0 ? wide.all.rows() : wide.wide.rows(),
                   .sums = scratch.sums + index * kPanelRows});
  }
}

template <class Tile>
void check_tile(const Tile& tile, int step) {
  MEGAMOE_CHECK(tile.num_rows >= 1 && tile.num_rows <= kMaxTileRows);
  MEGAMOE_CHECK(tile.first_channel >= 0 && tile.first_channel % step == 0);
  MEGAMOE_CHECK(tile.num_channels > 0 && tile.num_channels % step == 0);
  MEGAMOE_CHECK(tile.first_channel + tile.num_channels <= tile.weights.rows);
  MEGAMOE_CHECK(tile.weights.k % kGroupSize == 0 && tile.weights.k <= kMaxTileWidth);
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
  check_tile(tile, kLinear1Step);
  const int intermediate = weights.rows / 2;
  const WideRows wide(tile.input, tile.num_rows, weights.k);
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
  check_tile(tile, kLinear2Step);
  const WideRows wide(tile.input, tile.num_rows, weights.k);
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
