#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "trial.hpp"

// Ranks that are late, leave, or are used wrongly; and what is left after a failed call.

namespace megamoe {
namespace {

void wait_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

LayerOptions short_bound() {
  LayerOptions options = test_options();
  options.timeout_ms = 200;
  return options;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// H3: late, but within the bound.
TEST(LayerFailure, ALateRankWithinTheBoundIsWaitedFor) {
  const Trial trial(Trial::small(2));
  const auto result = launch_threads(2, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 9);
    if (group.rank() == 1) wait_ms(120);
    return std::string(trial.forward(layer, 0, 9) == expected ? "good" : "bad");
  });
  EXPECT_EQ(texts_of(result), (std::vector<std::string>{"good", "good"}));
}

/// Calls once in time and once so late that the others give up; then resets and calls again.
std::string live_through_lateness(Group& group, const Trial& trial, std::string& late_sentence) {
  Layer layer(group, trial.problem(), short_bound());
  trial.set_experts(layer, group.rank());
  const std::string expected = trial.forward(layer, 0, 9);
  group.gather("");
  if (group.rank() == 1) group.gather("");  // until rank 0 has given up
  late_sentence = thrown_by([&] { trial.forward(layer, 0, 9); });
  if (group.rank() == 0) group.gather("");
  const std::string again = thrown_by([&] { layer.forward({0, nullptr}); });
  if (!contains(again, "must be reset() before its next call")) return "used after failure";
  layer.reset();
  for (int call = 0; call < 3; ++call)
    if (trial.forward(layer, 0, 9) != expected) return "other bits after reset";
  return "good";
}

// H3, H4: late beyond the bound; everybody is told who and where, and can go on.
TEST(LayerFailure, ALateRankBeyondTheBoundIsNamedAndResetMendsIt) {
  const Trial trial(Trial::small(2));
  std::string sentences[2];
  const auto result = launch_threads(
      2, [&](Group group) { return live_through_lateness(group, trial, sentences[group.rank()]); });
  EXPECT_EQ(texts_of(result), (std::vector<std::string>{"good", "good"}));
  EXPECT_TRUE(contains(sentences[0], "run failed: rank 0, worker 0: gave up after 200 ms"))
      << sentences[0];
  EXPECT_TRUE(contains(sentences[0], "rank 1 was not there")) << sentences[0];
  EXPECT_TRUE(contains(sentences[1], "rank 0 gave up")) << sentences[1];
}

// H11: one rank gives up before its first call.
TEST(LayerFailure, ARankThatThrowsIsMissedAtOnceAndNotAtTheBound) {
  const Trial trial(Trial::small(3));
  const auto result = launch_threads(3, [&](Group group) -> std::string {
    Layer layer(group, trial.problem(), test_options());
    if (group.rank() == 1) throw Error(ErrorCode::kBadFile, "no such file");
    trial.set_experts(layer, group.rank());
    trial.forward(layer, 0, 9);
    return "";
  });
  EXPECT_TRUE(contains(result.ranks[0].sentence, "rank 1 left")) << result.ranks[0].sentence;
  EXPECT_TRUE(contains(result.ranks[2].sentence, "rank 1 left")) << result.ranks[2].sentence;
  EXPECT_EQ(result.cause().sentence, "no such file");
  EXPECT_EQ(result.cause().code, ErrorCode::kBadFile);
}

TEST(LayerFailure, ARankThatLeavesBeforeTheLayerIsMadeIsNamed) {
  const auto result = launch_threads(3, [&](Group group) -> std::string {
    if (group.rank() == 2) throw Error(ErrorCode::kBadFile, "no such file");
    Layer layer(group, Trial::small(3), test_options());
    return "";
  });
  EXPECT_TRUE(contains(result.ranks[0].sentence, "rank 2 left while ")) << result.ranks[0].sentence;
  EXPECT_TRUE(contains(result.ranks[1].sentence, "rank 2 left while ")) << result.ranks[1].sentence;
}

// H9: only one rank makes a new, larger layer.
TEST(LayerFailure, ALayerThatOnlyOneRankMakesIsRefusedOnBoth) {
  const auto result = launch_threads(2, [&](Group group) {
    Layer layer(group, Trial::small(2), short_bound());
    if (group.rank() == 0) return thrown_by([&] { Layer(group, Trial::small(2), short_bound()); });
    return thrown_by([&] { layer.reset(); });
  });
  const auto texts = texts_of(result);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_TRUE(contains(texts[0], "collective calls must come in the same order")) << texts[0];
}

TEST(LayerFailure, AMissingRankAtAMeetingIsNamedAfterTheBound) {
  auto groups = Group::in_process(3);
  std::thread other([&] { thrown_by([&] { groups[2].gather("", 5000); }); });
  EXPECT_TRUE(contains(thrown_by([&] { groups[0].gather("", 50); }),
                       "rank 0 gave up after 50 ms waiting for rank 1"));
  other.join();
}

// M3: two calls at once.
TEST(LayerFailure, ASecondCallAtTheSameTimeIsRefused) {
  const Trial trial(Trial::small(2));
  auto groups = Group::in_process(2);
  std::vector<Layer> layers;
  {
    std::thread other([&] { layers.emplace_back(groups[1], trial.problem(), test_options()); });
    Layer mine(groups[0], trial.problem(), test_options());
    other.join();
    layers.insert(layers.begin(), std::move(mine));
  }
  for (int rank = 0; rank < 2; ++rank)
    trial.set_experts(layers[static_cast<std::size_t>(rank)], rank);
  Layer sibling = layers[0].sibling();
  const std::string busy = "another call is under way on this layer";
  std::thread first([&] {
    while (contains(thrown_by([&] { layers[0].forward({0, nullptr}); }), busy)) {
    }
  });
  // Rank 0's call waits for rank 1's, so it is under way from the first refusal on.
  while (!contains(thrown_by([&] { sibling.set_expert(9, {}); }), busy)) {
  }
  const std::string refusal = thrown_by([&] { sibling.forward({0, nullptr}); });
  layers[1].forward({0, nullptr});
  first.join();
  EXPECT_TRUE(contains(refusal, busy)) << refusal;
}

// M4: made and given back, again and again.
TEST(LayerFailure, LayersComeAndGo) {
  const Trial trial(Trial::small(2));
  const auto result = launch_threads(2, [&](Group group) {
    std::string expected;
    for (int round = 0; round < 100; ++round) {
      const std::string y = run_once(group, trial, test_options(), 0, 3);
      if (round == 0) expected = y;
      if (y != expected) return std::string("other bits");
    }
    return std::string("good");
  });
  EXPECT_EQ(texts_of(result), (std::vector<std::string>{"good", "good"}));
}

TEST(LayerFailure, AMovedFromLayerIsRefused) {
  auto groups = Group::in_process(1);
  Layer layer(groups[0], Trial::small(1), test_options());
  const Layer taken = std::move(layer);
  EXPECT_EQ(thrown_by([&] {
              layer.forward({0, nullptr});
            }),  // NOLINT(bugprone-use-after-move)
            "invalid argument: the layer was moved from");
}

TEST(LayerFailure, MoreMemoryThanThereIsIsRefusedWithBothNumbers) {
  auto groups = Group::in_process(1);
  Problem problem = Trial::small(1);
  problem.capacity = kMaxCapacity;
  problem.hidden = kMaxLinearWidth;
  const std::string refusal = thrown_by([&] { Layer(groups[0], problem, test_options()); });
  EXPECT_TRUE(contains(refusal, "run failed: the symmetric memory of 1 rank needs ")) << refusal;
  EXPECT_TRUE(contains(refusal, " available. A smaller capacity")) << refusal;
}

}  // namespace
}  // namespace megamoe
