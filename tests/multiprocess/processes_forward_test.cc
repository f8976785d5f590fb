#include <gtest/gtest.h>

#include <random>

#include "trial.hpp"

// Ranks that are processes compute what ranks that are threads do, and live through the same.

namespace megamoe {
namespace {

using Launch = LaunchResult(int, const RankBody&);

TEST(ProcessesForward, GiveTheBitsThatThreadsGive) {
  const Trial trial(Trial::small(4));
  const RankBody body = [&](Group group) {
    return run_once(group, trial, test_options(), 6 * group.rank(), 2 * group.rank());
  };
  EXPECT_EQ(texts_of(launch_processes(4, body)), texts_of(launch_threads(4, body)));
}

TEST(ProcessesForward, AHundredCallsWithAnyTokensGiveTheSameBitsAgain) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Trial trial(Trial::small(3));
  const auto result = launch_processes(3, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 24);
    std::mt19937_64 random(kSeed + static_cast<std::uint64_t>(group.rank()));
    int wrong = 0;
    for (int call = 0; call < 100; ++call) {
      const auto tokens = static_cast<std::int64_t>(random() % 3 == 0 ? 0 : random() % 25);
      const std::string y = trial.forward(layer, 0, tokens);
      wrong += y != expected.substr(0, y.size());
    }
    return std::to_string(wrong);
  });
  EXPECT_EQ(texts_of(result), std::vector<std::string>(3, "0"));
}

TEST(ProcessesForward, ARefusedInputIsTheSameSentenceOnAllAndTheNextCallIsGood) {
  const Trial trial(Trial::small(3));
  const auto result = launch_processes(3, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 5);
    if (group.rank() == 2) layer.inputs().topk_ids[4] = 6;
    std::vector<std::uint16_t> y(5 * 64);
    const std::string sentence = thrown_by([&] { layer.forward({5, y.data()}); });
    return trial.forward(layer, 0, 5) == expected ? sentence : "the next call went wrong";
  });
  EXPECT_EQ(texts_of(result),
            std::vector<std::string>(3,
                                     "invalid argument: topk_ids of rank 2, token 1, slot 1 is 6; "
                                     "the layer has experts 0 to 5, and ids below 0 are masked"));
}

// H10
TEST(ProcessesForward, AMismatchIsTheSameSentenceOnAll) {
  const auto result = launch_processes(3, [&](Group group) {
    Problem problem = Trial::small(3);
    if (group.rank() == 2) problem.capacity = 32;
    return thrown_by([&] { Layer(group, problem, test_options()); });
  });
  EXPECT_EQ(texts_of(result),
            std::vector<std::string>(3,
                                     "invalid argument: ranks 0 and 2 disagree on capacity of the "
                                     "layer: 24 on rank 0, 32 on rank 2"));
}

// H3: late beyond the bound, then reset.
TEST(ProcessesForward, ALateRankIsNamedAndResetMendsIt) {
  const Trial trial(Trial::small(2));
  const auto result = launch_processes(2, [&](Group group) -> std::string {
    LayerOptions options = test_options();
    options.timeout_ms = 200;
    Layer layer(group, trial.problem(), options);
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 9);
    group.gather("");
    if (group.rank() == 1) group.gather("");  // until rank 0 has given up
    const std::string sentence = thrown_by([&] { trial.forward(layer, 0, 9); });
    if (group.rank() == 0) group.gather("");
    layer.reset();
    return trial.forward(layer, 0, 9) == expected ? sentence : "other bits after reset";
  });
  const auto texts = texts_of(result);
  EXPECT_NE(texts[0].find("gave up after 200 ms without progress"), std::string::npos) << texts[0];
  EXPECT_NE(texts[0].find("rank 1 was not there"), std::string::npos) << texts[0];
  EXPECT_NE(texts[1].find("rank 0 gave up"), std::string::npos) << texts[1];
}

TEST(ProcessesForward, TextsOfAnySizeAreGathered) {
  const auto result = launch_processes(3, [](Group group) {
    const std::string mine(1'000'000 * static_cast<std::size_t>(group.rank()),
                           static_cast<char>('a' + group.rank()));
    std::string seen;
    for (const std::string& text : group.gather(mine))
      seen += std::to_string(text.size()) + (text.empty() ? "-" : text.substr(0, 1)) + " ";
    return seen;
  });
  EXPECT_EQ(texts_of(result), std::vector<std::string>(3, "0- 1000000b 2000000c "));
}

}  // namespace
}  // namespace megamoe
