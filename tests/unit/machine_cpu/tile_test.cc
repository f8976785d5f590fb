// The whole layer of one expert, for every instruction set of this computer, against fp64.
#include <gtest/gtest.h>

#include "megamoe/error.hpp"
#include "sets.hpp"
#include "tile_case.hpp"

namespace megamoe::cpu {
namespace {

class TileTest : public SetTest {
 protected:
  void expect_close(const Expert& expert, const Tokens& tokens) const {
    const int hidden = expert.problem.hidden;
    const std::vector<float> actual = widened(run_layer(kernel_, expert, tokens));
    const std::vector<float> expected =
        reference_linear2(expert, reference_linear1(expert, tokens));
    for (int row = 0; row < tokens.num_rows; ++row) {
      const auto at = static_cast<std::size_t>(row * hidden);
      EXPECT_LT(relative_error(&actual[at], &expected[at], hidden), 0.002) << "row " << row;
    }
  }
};

// Widths that are no multiple of 64, 128 or 512 among them, with more than two tokens and scales
// that differ from token to token.
TEST_P(TileTest, AgreesWithFp64OverShapes) {
  struct Shape {
    int hidden, intermediate, rows;
  };
  unsigned seed = 1;
  for (const Shape& shape : {Shape{32, 32, 3},
                             Shape{32, 96, 5},
                             Shape{96, 32, 14},
                             Shape{96, 160, 25},
                             Shape{288, 352, 7},
                             Shape{2176, 64, 3},
                             Shape{2432, 32, 3},
                             Shape{2880, 96, 4},
                             Shape{96, 2880, 4},
                             Shape{64, 2560, 3},
                             Shape{1024, 768, 3}}) {
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", H " << shape.hidden << ", I " << shape.intermediate);
    Random random(seed++);
    const Expert expert =
        random_expert(random, shape.hidden, shape.intermediate, ScaleBytes::between(116, 122));
    expect_close(expert,
                 random_tokens(random, shape.rows, shape.hidden, ScaleBytes::between(112, 120)));
  }
}

TEST_P(TileTest, AgreesWithFp64WithBiasesAndBothActivations) {
  for (const ActivationKind kind : {ActivationKind::kSwiglu, ActivationKind::kSwigluOai}) {
    for (const float clamp : {0.5F, 7.0F, 1e30F}) {
      SCOPED_TRACE(testing::Message() << "seed 21, clamp " << clamp);
      Random random(21);
      Expert expert = random_expert(random, 256, 192, ScaleBytes::between(117, 121));
      add_biases(random, expert);
      expert.problem.activation = {.kind = kind, .clamp = clamp, .alpha = 1.702F, .limit = clamp};
      expect_close(expert, random_tokens(random, 17, 256, ScaleBytes::between(113, 119)));
    }
  }
}

TEST_P(TileTest, RefusesTilesOutsideTheirBounds) {
  Random random(22);
  const Expert expert = random_expert(random, 64, 64, ScaleBytes::between(120, 120));
  const AlignedBytes packed = expert.packed_linear1();
  const auto scratch = std::make_unique<TileScratch>();
  const auto refuses = [&](int rows, int first_channel, int channels) {
    Linear1Tile tile;
    tile.weights = {.bytes = packed.data(), .rows = 128, .k = 64};
    tile.num_rows = rows;
    tile.first_channel = first_channel;
    tile.num_channels = channels;
    EXPECT_THROW(kernel_.linear1(tile, *scratch), Error)
        << rows << " rows, channels " << first_channel << " + " << channels;
  };
  refuses(0, 0, 64);
  refuses(kMaxTileRows + 1, 0, 64);
  refuses(1, 32, 64);
  refuses(1, 0, 32);
  refuses(1, 64, 128);
}

INSTANTIATE_TEST_SUITE_P(Sets, TileTest, all_sets(), set_label);

}  // namespace
}  // namespace megamoe::cpu
