// A row's bits depend on its token, its weight and its expert alone: not on the height of the tile,
// the place in it, the channels that are multiplied together, or who else works on the rows.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "sets.hpp"
#include "tile_case.hpp"

namespace megamoe::cpu {
namespace {

class TileInvarianceTest : public SetTest {
 protected:
  static constexpr int kHidden = 96;
  static constexpr int kIntermediate = 160;
  static constexpr int kRows = kMaxTileRows;

  // With rows and panels that go the general way among them, and a NaN.
  void SetUp() override {
    Random random(40);
    expert_ = random_expert(random, kHidden, kIntermediate, ScaleBytes::between(116, 121));
    expert_.linear1_scale[5] = 20;
    expert_.linear2_scale[kHidden * kIntermediate / 32 - 1] = 200;
    add_biases(random, expert_);
    tokens_ = random_tokens(random, kRows, kHidden, ScaleBytes::between(112, 118));
    tokens_.scales_of(17)[1] = 10;
    tokens_.scales_of(100)[2] = 255;
    expected_ = run_layer(kernel_, expert_, tokens_, {.rows = 1});
  }

  void expect_same(const std::vector<Bfloat16>& actual) const {
    ASSERT_EQ(actual.size(), expected_.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_EQ(actual[i].bits, expected_[i].bits) << "row " << i / kHidden;
  }

  Expert expert_;
  Tokens tokens_;
  std::vector<Bfloat16> expected_;
};

TEST_P(TileInvarianceTest, ToTheHeightOfTheTile) {
  const int step = GetParam() == best_instruction_set() ? 1 : 7;
  for (int height = 1; height <= kMaxTileRows; height += step) {
    SCOPED_TRACE(testing::Message() << "seed 40, height " << height);
    expect_same(run_layer(kernel_, expert_, tokens_, {.rows = height}));
  }
}

TEST_P(TileInvarianceTest, ToTheChannelsOfTheTile) {
  for (const TileShape& shape :
       {TileShape{12, 128, 64}, TileShape{192, 192, 96}, TileShape{7, 320, 32}}) {
    SCOPED_TRACE(testing::Message() << "seed 40, channels " << shape.linear1_channels);
    expect_same(run_layer(kernel_, expert_, tokens_, shape));
  }
}

TEST_P(TileInvarianceTest, ToThePlaceInTheTile) {
  std::vector<int> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  Random random(41);
  std::shuffle(order.begin(), order.end(), random);
  Tokens shuffled = tokens_;
  for (int row = 0; row < kRows; ++row) {
    const int from = order[static_cast<std::size_t>(row)];
    std::copy_n(tokens_.codes_of(from), kHidden, shuffled.codes_of(row));
    std::copy_n(tokens_.scales_of(from), kHidden / 32, shuffled.scales_of(row));
    shuffled.routing_weights[static_cast<std::size_t>(row)] =
        tokens_.routing_weights[static_cast<std::size_t>(from)];
  }
  const std::vector<Bfloat16> output = run_layer(kernel_, expert_, shuffled);
  std::vector<Bfloat16> restored(output.size());
  for (std::size_t row = 0; row < kRows; ++row)
    std::copy_n(output.begin() + static_cast<std::ptrdiff_t>(row * kHidden),
                kHidden,
                restored.begin() + order[row] * kHidden);
  expect_same(restored);
}

// Two workers write neighbouring groups of the same rows.
TEST_P(TileInvarianceTest, ToTheWorkerThatComputesIt) {
  const AlignedBytes expected = run_linear1(kernel_, expert_, tokens_);
  const AlignedBytes packed = expert_.packed_linear1();
  const AlignedBytes input = pool_of(kernel_, tokens_);
  AlignedBytes output(expected.size());
  const auto work = [&](int worker) {
    const auto scratch = std::make_unique<TileScratch>();
    for (int channel = 64 * worker; channel < 2 * kIntermediate; channel += 128)
      kernel_.linear1({.weights = {packed.data(), 2 * kIntermediate, kHidden},
                       .first_channel = channel,
                       .num_channels = 64,
                       .input = {input.data(), row_bytes(kHidden)},
                       .num_rows = kRows,
                       .routing_weights = tokens_.routing_weights.data(),
                       .bias = expert_.linear1_bias.data(),
                       .activation = expert_.problem.activation,
                       .output = {output.data(), row_bytes(kIntermediate)}},
                      *scratch);
  };
  std::thread second(work, 1);
  work(0);
  second.join();
  EXPECT_EQ(std::memcmp(output.data(), expected.data(), output.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Sets, TileInvarianceTest, all_sets(), set_label);

}  // namespace
}  // namespace megamoe::cpu
