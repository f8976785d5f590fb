#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "child_process.hpp"
#include "trial.hpp"

// H8: kill -9 at any time. The others learn who died, at once: their bound is far beyond what a
// test may take.

namespace megamoe {
namespace {

constexpr int kRanks = 3;
constexpr int kVictim = 2;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

[[noreturn]] void die() {
  raise(SIGKILL);
  _exit(1);
}

/// Runs the body, in which the victim dies; the others' sentences.
std::vector<std::string> survivors_of(const RankBody& body) {
  const LaunchResult result = launch_processes(kRanks, body);
  EXPECT_EQ(result.ranks[kVictim].signal, SIGKILL);
  EXPECT_TRUE(contains(result.ranks[kVictim].sentence, "was killed by signal 9"))
      << result.ranks[kVictim].sentence;
  EXPECT_EQ(&result.cause(), &result.ranks[kVictim]);
  auto texts = texts_of(result);
  texts.pop_back();
  return texts;
}

TEST(Death, WhileTheLayerIsMade) {
  for (const std::string& text : survivors_of([](Group group) {
         if (group.rank() == kVictim) die();
         return thrown_by([&] { Layer(group, Trial::small(kRanks), test_options()); });
       }))
    EXPECT_TRUE(contains(text, "rank 2 died while rank ")) << text;
}

TEST(Death, BetweenTheLayerAndTheFirstCall) {
  const Trial trial(Trial::small(kRanks));
  for (const std::string& text : survivors_of([&](Group group) {
         Layer layer(group, trial.problem(), test_options());
         trial.set_experts(layer, group.rank());
         if (group.rank() == kVictim) die();
         return thrown_by([&] { trial.forward(layer, 0, 5); });
       }))
    EXPECT_TRUE(contains(text, "rank 2 died")) << text;
}

// The others wait for it at barrier 1 when it dies.
TEST(Death, WhileOthersWaitInACall) {
  const Trial trial(Trial::small(kRanks));
  const SharedWord waiting;
  for (const std::string& text : survivors_of([&](Group group) {
         Layer layer(group, trial.problem(), test_options());
         trial.set_experts(layer, group.rank());
         trial.forward(layer, 0, 5);
         if (group.rank() == kVictim) {
           waiting.await(kRanks - 1);
           usleep(20'000);
           die();
         }
         waiting.add(1);
         return thrown_by([&] { trial.forward(layer, 0, 5); });
       })) {
    EXPECT_TRUE(contains(text, ": left while waiting for ")) << text;
    EXPECT_TRUE(contains(text, ": rank 2 died")) << text;
  }
}

// Somewhere within a call, whose work is much longer than the victim lives.
TEST(Death, InTheMiddleOfACall) {
  Problem problem = Trial::small(kRanks);
  problem.hidden = 512;
  problem.intermediate = 512;
  problem.capacity = 512;
  const Trial trial(problem);
  for (const std::string& text : survivors_of([&](Group group) {
         Layer layer(group, trial.problem(), test_options());
         trial.set_experts(layer, group.rank());
         trial.set_tokens(layer, 0, 64);
         if (group.rank() == kVictim) {
           signal(SIGALRM, [](int) { die(); });
           ualarm(3'000, 0);
         }
         std::vector<std::uint16_t> y(512 * 512);
         return thrown_by([&] {
           for (int call = 0; call < 10'000; ++call)
             layer.forward({64, y.data()});
         });
       }))
    EXPECT_TRUE(contains(text, "rank 2 died")) << text;
}

TEST(Death, OfRankZeroIsNoticedByTheRest) {
  const Trial trial(Trial::small(kRanks));
  const auto result = launch_processes(kRanks, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    trial.set_experts(layer, group.rank());
    if (group.rank() == 0) die();
    const std::string first = thrown_by([&] { trial.forward(layer, 0, 5); });
    return first + "; " + thrown_by([&] { layer.reset(); });
  });
  const auto texts = texts_of(result);
  for (const int rank : {1, 2}) {
    const std::string& text = texts[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(contains(text, "rank 0 died")) << text;
    EXPECT_TRUE(contains(text,
                         "rank 0 died while rank " + std::to_string(rank) +
                             " waited for it at the reset of a layer"))
        << text;
  }
}

// A rank that has done its part and goes in good order spoils nobody's last call.
TEST(Death, GoingInGoodOrderAfterTheLastCallIsNoFault) {
  const Trial trial(Trial::small(kRanks));
  for (int round = 0; round < 20; ++round) {
    const auto result = launch_processes(
        kRanks, [&](Group group) { return run_once(group, trial, test_options(), 0, 7); });
    for (const RankOutcome& rank : result.ranks)
      EXPECT_TRUE(rank.is_good) << rank.sentence;
  }
}

TEST(Death, ARankThatEndsInGoodOrderWhileOthersCallOnIsNamed) {
  const Trial trial(Trial::small(kRanks));
  const auto result = launch_processes(kRanks, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    trial.set_experts(layer, group.rank());
    trial.forward(layer, 0, 5);
    if (group.rank() == kVictim) return std::string();
    return thrown_by([&] { trial.forward(layer, 0, 5); });
  });
  for (const int rank : {0, 1}) {
    const std::string& text = result.ranks[static_cast<std::size_t>(rank)].result;
    EXPECT_TRUE(contains(text, "rank 2 left") || contains(text, "rank 2 died")) << text;
  }
}

}  // namespace
}  // namespace megamoe
