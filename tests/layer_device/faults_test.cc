// A rank that does not come, and cards and SMs that are not there.
#include <chrono>
#include <thread>

#include "card.hpp"

namespace megamoe::test {
namespace {

Problem pair_problem() {
  return {.ranks = 2, .experts = 8, .topk = 3, .hidden = 256, .intermediate = 128, .capacity = 64};
}

class FaultsOnCard : public OnCard {};

// The one that waits says for whom; later calls say what to do; after a reset all is as before.
TEST_P(FaultsOnCard, AMissingRankIsNamedAndTheLayerWorksAfterAReset) {
  const Trial trial(pair_problem());
  LayerOptions options = card_options();
  options.timeout_ms = 1000;
  const LaunchResult result = launch_threads(2, [&](Group group) {
    Layer layer(group, trial.problem(), options);
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 9);
    std::string told;
    if (group.rank() == 0) {
      told = thrown_by([&] { trial.forward(layer, 0, 9); });
      EXPECT_NE(thrown_by([&] { trial.forward(layer, 0, 9); }).find("must be reset()"),
                std::string::npos);
    }
    group.gather("");  // a reset waits no longer than a call
    layer.reset();
    EXPECT_TRUE(trial.forward(layer, 0, 9) == expected);
    return told;
  });
  const auto texts = texts_of(result);
  EXPECT_NE(
      texts[0].find("gave up after 1000 ms without progress, waiting for rank 1 at barrier 1"),
      std::string::npos)
      << texts[0];
  EXPECT_NE(texts[0].find("rank 0, worker "), std::string::npos) << texts[0];
  EXPECT_EQ(texts[1], "");
}

// Late within the bound is no fault.
TEST_P(FaultsOnCard, ALateRankIsWaitedFor) {
  const Trial trial(pair_problem());
  const LaunchResult result = launch_threads(2, [&](Group group) {
    Layer layer(group, trial.problem(), card_options());
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 9);
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return std::string(trial.forward(layer, 0, 9) == expected ? "same" : "other");
  });
  EXPECT_EQ(texts_of(result), (std::vector<std::string>{"same", "same"}));
}

// A rank that gives its layer back makes the others' next call fail at once.
TEST_P(FaultsOnCard, ARankThatLeavesIsNamed) {
  const Trial trial(pair_problem());
  const LaunchResult result = launch_threads(2, [&](Group group) {
    Layer layer(group, trial.problem(), card_options());
    trial.set_experts(layer, group.rank());
    static_cast<void>(trial.forward(layer, 0, 9));
    if (group.rank() == 1) return std::string();
    return thrown_by([&] { trial.forward(layer, 0, 9); });
  });
  EXPECT_NE(texts_of(result)[0].find("rank 1 left"), std::string::npos) << texts_of(result)[0];
}

std::string refusal_of(int ranks,
                       const LayerOptions& usual,
                       const std::function<void(int, LayerOptions&)>& change) {
  const Trial trial(pair_problem());
  const LaunchResult result = launch_threads(ranks, [&](Group group) {
    LayerOptions options = usual;
    change(group.rank(), options);
    Problem problem = trial.problem();
    problem.ranks = ranks;
    problem.experts = ranks * 2;
    const Layer layer(group, problem, options);
    return layer.machine();
  });
  return texts_of(result)[0];
}

// What can't work is refused before anything is launched.
TEST_P(FaultsOnCard, WhatACardDoesNotHaveIsRefusedWithBothNumbers) {
  int sms = 0;
  expect_cuda(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "SMs");
  const std::string all = std::to_string(sms);
  const LayerOptions usual = card_options();
  EXPECT_NE(refusal_of(1, usual, [&](int, LayerOptions& o) { o.num_sms = sms + 1; }).find(all),
            std::string::npos);
  const std::string shared = refusal_of(2, usual, [&](int, LayerOptions& o) { o.num_sms = sms; });
  EXPECT_NE(shared.find("ranks 0 and 1 need " + std::to_string(2 * sms) +
                        " SMs of card 0; it has " + all),
            std::string::npos)
      << shared;
  EXPECT_NE(refusal_of(1, usual, [](int, LayerOptions& o) { o.device = 99; }).find("device is 99"),
            std::string::npos);
  EXPECT_NE(refusal_of(1, usual, [](int, LayerOptions& o) { o.workers = 2; }).find("takes num_sms"),
            std::string::npos);
}

// What ranks ask for differently, and what a machine does not have.
TEST_P(FaultsOnCard, NumericsAndSmsThatAMachineDoesNotHaveAreRefused) {
  const LayerOptions usual = card_options();
  if (GetParam().has_fast()) {
    const std::string told = refusal_of(
        2, usual, [](int rank, LayerOptions& o) { o.numerics = rank == 0 ? "fast" : "exact"; });
    EXPECT_NE(told.find("disagree on machine"), std::string::npos) << told;
    return;
  }
  const std::string fast = refusal_of(1, usual, [](int, LayerOptions& o) { o.numerics = "fast"; });
  EXPECT_NE(fast.find("has exact only"), std::string::npos) << fast;
  const std::string one = refusal_of(2, usual, [](int rank, LayerOptions& o) {
    if (rank == 1) o.num_sms = 1;
  });
  EXPECT_NE(one.find("num_sms is 1; SM100 works in pairs"), std::string::npos) << one;
}

// More ranks than numbers can be shared out is refused; an uneven wish is not.
TEST_P(FaultsOnCard, UnevenSharesWork) {
  const Trial trial(pair_problem());
  const LaunchResult result = launch_threads(2, [&](Group group) {
    LayerOptions options = card_options();
    if (group.rank() == 0) options.num_sms = 5;
    Layer layer(group, trial.problem(), options);
    trial.set_experts(layer, group.rank());
    static_cast<void>(trial.forward(layer, 0, 9));
    return std::to_string(layer.workers());
  });
  EXPECT_EQ(texts_of(result)[0], GetParam().has_fast() ? "5" : "4") << "Blackwell takes pairs";
  EXPECT_GT(std::stoi(texts_of(result)[1]), 5);
}

// Weights that the fast numerics can't hold are refused by name, and held by the exact ones.
TEST_P(FaultsOnCard, WeightsWithWideExponentsAreHeldByExactNumerics) {
  const Problem problem{.experts = 1, .hidden = 64, .intermediate = 32, .capacity = 1};
  const std::vector<std::uint8_t> codes(64 * 32, 0x22);
  std::vector<std::uint8_t> scales(64 * 64 / 32, 120);
  scales[0] = 90;
  const WeightView view{codes.data(), scales.data(), codes.data(), scales.data()};
  auto groups = Group::in_process(1);
  if (GetParam().has_fast()) {
    Layer fast(groups[0], problem, card_options("fast"));
    EXPECT_NE(thrown_by([&] { fast.set_expert(0, view); }).find("numerics exact holds all"),
              std::string::npos);
  }
  Layer exact(groups[0], problem, card_options("exact"));
  EXPECT_NO_THROW(exact.set_expert(0, view));
}

INSTANTIATE_TEST_SUITE_P(Machines,
                         FaultsOnCard,
                         testing::Values(kHopper, kEmulatedBlackwell),
                         name_of);

}  // namespace
}  // namespace megamoe::test
