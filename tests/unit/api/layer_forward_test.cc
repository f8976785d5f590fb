#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "trial.hpp"

// What a layer computes, whoever its ranks are: against the reference, and bit for bit against
// itself under other ranks, workers, pools, capacities and calls.

namespace megamoe {
namespace {

/// y of all tokens in rank order, from one call in which rank r has tokens[r] of them.
std::string y_of(const Trial& trial,
                 const std::vector<std::int64_t>& tokens,
                 const LayerOptions& options) {
  const auto result = launch_threads(static_cast<int>(tokens.size()), [&](Group group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    const std::int64_t first =
        std::accumulate(tokens.begin(), tokens.begin() + group.rank(), std::int64_t{0});
    return run_once(group, trial, options, first, tokens[rank]);
  });
  const auto texts = texts_of(result);
  return std::accumulate(texts.begin(), texts.end(), std::string());
}

TEST(LayerForward, AgreesWithTheReference) {
  const Trial trial(Trial::small(4));
  const std::string y = y_of(trial, {7, 0, 24, 5}, test_options());
  const std::span<const Bfloat16> got(reinterpret_cast<const Bfloat16*>(y.data()), y.size() / 2);
  const Comparison comparison = compare(got, trial.reference(36), trial.problem().hidden);
  EXPECT_TRUE(comparison.agrees()) << comparison.explain();
}

TEST(LayerForward, IsTheSameBitsOnAnyRanksWorkersAndPools) {
  const Trial trial(Trial::small(4));
  const std::string expected = y_of(trial, {16, 0, 4, 0}, test_options());
  ASSERT_EQ(expected.size(), 20U * 64 * 2);
  LayerOptions options = test_options();
  EXPECT_EQ(y_of(trial, {20}, options), expected);
  EXPECT_EQ(y_of(trial, {3, 17}, options), expected);
  options.workers = 3;
  options.pool_rows = 384;
  EXPECT_EQ(y_of(trial, {3, 17}, options), expected);
  options.expected_tokens = 24;
  EXPECT_EQ(y_of(trial, {0, 0, 0, 20}, options), expected);
}

// H5: a rank's tokens have nothing to do with another's, from call to call.
TEST(LayerForward, AHundredCallsWithAnyTokensGiveTheSameBitsAgain) {
  constexpr std::uint64_t kSeed = 20;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Trial trial(Trial::small(2));
  const auto result = launch_threads(2, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 24);
    const std::size_t row = 64 * sizeof(std::uint16_t);
    std::mt19937_64 random(kSeed + static_cast<std::uint64_t>(group.rank()));
    int wrong = 0;
    for (int call = 0; call < 100; ++call) {
      const auto tokens = static_cast<std::int64_t>(random() % 4 == 0 ? 0 : random() % 25);
      const std::string y = trial.forward(layer, 0, tokens);
      wrong += y != expected.substr(0, static_cast<std::size_t>(tokens) * row);
    }
    return std::to_string(wrong);
  });
  EXPECT_EQ(texts_of(result), (std::vector<std::string>{"0", "0"}));
}

// C5: no tokens anywhere, and no output to put them.
TEST(LayerForward, NoTokensOnAnyRankIsACallLikeOthers) {
  const Trial trial(Trial::small(2));
  EXPECT_EQ(y_of(trial, {0, 0}, test_options()), "");
}

TEST(LayerForward, ReportsRowsBytesAndTimes) {
  const Trial trial(Trial::small(2));
  const auto result = launch_threads(2, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    trial.set_experts(layer, group.rank());
    const LayerInputs in = layer.inputs();
    trial.set_tokens(layer, 0, 2);
    // Experts 0 and 1 live on rank 0, 2 and 3 on rank 1.
    const std::int64_t ids[] = {0, 2, -1, 3, 3, -7};
    std::copy(std::begin(ids), std::end(ids), in.topk_ids.begin());
    std::vector<std::uint16_t> y(2 * 64);
    const CallReport report = layer.forward({2, y.data()});
    const bool has_times = report.times.total > 0 && report.times.route >= 0;
    return std::to_string(report.expert_rows[0]) + " " + std::to_string(report.expert_rows[1]) +
           " " + std::to_string(report.bytes_pulled) + " " + std::to_string(report.bytes_pushed) +
           (has_times ? "" : " no times");
  });
  // A row that comes from elsewhere: 64 codes, 2 scales, a weight and a source index; back, 64
  // bf16.
  EXPECT_EQ(
      texts_of(result),
      (std::vector<std::string>{"2 0 " + std::to_string(1 * 74) + " " + std::to_string(128),
                                "2 4 " + std::to_string(3 * 74) + " " + std::to_string(3 * 128)}));
}

// W21: new weights in place are as good as a new layer.
TEST(LayerForward, ReplacedWeightsAreTheOnesThatCount) {
  const Trial first(Trial::small(2), 1);
  const Trial second(Trial::small(2), 2);
  const std::string expected = y_of(second, {5, 5}, test_options());
  const auto result = launch_threads(2, [&](Group group) {
    Layer layer(group, first.problem(), test_options());
    first.set_experts(layer, group.rank());
    first.forward(layer, 0, 9);
    second.set_experts(layer, group.rank());
    return second.forward(layer, group.rank() * 5, 5);
  });
  const auto texts = texts_of(result);
  EXPECT_EQ(texts[0] + texts[1], expected);
}

// M3: many layers, one buffer.
TEST(LayerForward, SiblingsShareMemoryAndKeepTheirOwnWeights) {
  const Trial first(Trial::small(2), 1);
  const Trial second(Trial::small(2), 2);
  const auto run = [&](bool is_sibling) {
    const auto result = launch_threads(2, [&](Group group) {
      Layer layer(group, first.problem(), test_options());
      Layer other = is_sibling ? layer.sibling() : Layer(group, first.problem(), test_options());
      first.set_experts(layer, group.rank());
      second.set_experts(other, group.rank());
      const bool is_shared = layer.inputs().tokens.data() == other.inputs().tokens.data();
      std::string y = is_shared == is_sibling ? "" : "memory is not shared as it should be";
      for (int round = 0; round < 3; ++round)
        y += first.forward(layer, round, 6) + second.forward(other, round, 6);
      return y;
    });
    return texts_of(result);
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(LayerForward, RunsInMemoryOfTheCallersOwn) {
  const Trial trial(Trial::small(2));
  const std::string expected = y_of(trial, {6, 7}, test_options());
  LayerOptions options = test_options();
  options.memory.bytes = Layer::symmetric_bytes(trial.problem(), options);
  struct Page {
    alignas(4096) std::byte bytes[4096];
  };
  const std::size_t pages = options.memory.bytes / sizeof(Page);
  std::vector<Page> memory(2 * pages);
  std::memset(memory.data(), 0xFF, memory.size() * sizeof(Page));
  options.memory.bases = {memory.data(), memory.data() + pages};
  EXPECT_EQ(y_of(trial, {6, 7}, options), expected);
}

}  // namespace
}  // namespace megamoe
