#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/sm100/weight_layout.hpp"

namespace megamoe::test {

// Tiles of one pair of weight blocks: `tiles` pool blocks of `block_m` tokens, the last with fewer.
struct TileShape {
  int block_m = 16;
  int depth = 128;
  int tiles = 1;
  int last_rows = 16;

  int steps() const { return sm100::steps_of(depth); }
  int rows_of(int tile) const { return tile + 1 == tiles ? last_rows : block_m; }
};

struct ExpectedSum {
  double value;
  double magnitude;  // sum of |products|: what a difference is judged by
};

// Random operands, packed and scattered by the machine's own layouts, and the sums in fp64. Tokens
// behind a tile's last row are NaN: whoever lets them into another token's sum shows.
class TileCase {
 public:
  TileCase(const TileShape& shape, unsigned seed);

  ExpectedSum expected(int tile, int row, int token) const;

  TileShape shape;
  sm100::WeightLayout layout;
  std::vector<std::byte> codes, weight_scales;  // sm100::pack's
  std::vector<std::byte> tokens, token_scales;  // [tiles][steps][...]

 private:
  void make_weights(unsigned seed);
  void make_tokens(unsigned seed);

  std::vector<double> weights_;  // [256][depth], scales folded in
  std::vector<double> values_;   // [tiles][block_m][depth]
};

}  // namespace megamoe::test
