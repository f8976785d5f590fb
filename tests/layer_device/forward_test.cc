// A layer's output on the card: against fp64, against the CPU machine, and against itself in every
// way of running it that must not change a bit.
#include <cmath>

#include "card.hpp"

namespace megamoe::test {
namespace {

Problem middling(int ranks) {
  return {
      .ranks = ranks, .experts = 16, .topk = 4, .hidden = 512, .intermediate = 256, .capacity = 96};
}

// Any split of 96 tokens among ranks, an empty one included.
std::vector<int> ragged(int ranks) {
  switch (ranks) {
    case 1: return {96};
    case 2: return {95, 1};
    case 4: return {0, 50, 1, 45};
    default: return {1, 0, 30, 17, 8, 0, 39, 1};
  }
}

std::string y_on_cpu(const Trial& trial) {
  auto groups = Group::in_process(1);
  LayerOptions options;
  options.machine = "cpu";
  return run_once(groups[0], trial, options, 0, 96);
}

double relative_l2(const std::string& a, const std::string& b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i + 1 < a.size(); i += 2) {
    const auto value = [i](const std::string& y) {
      const auto low = static_cast<unsigned char>(y[i]);
      const auto high = static_cast<unsigned char>(y[i + 1]);
      return static_cast<double>(to_float(Bfloat16{static_cast<std::uint16_t>(low | (high << 8))}));
    };
    difference += (value(a) - value(b)) * (value(a) - value(b));
    norm += value(b) * value(b);
  }
  return std::sqrt(difference / norm);
}

class ForwardOnCard : public OnCard {};

// The same bits with 1, 2, 4 and 8 ranks on one card, close to the CPU's and to fp64's.
TEST_P(ForwardOnCard, AgreesWithFp64AndTheCpuOnAnyNumberOfRanks) {
  const Trial trial(middling(1));
  const LayerOptions options = card_options();
  const std::string one = y_on_card(trial, ragged(1), options);
  ASSERT_EQ(one.size(), std::size_t{96} * 512 * 2) << one;
  const Comparison comparison = judged(trial, one, GetParam().tolerance());
  EXPECT_TRUE(comparison.agrees()) << comparison.explain();
  EXPECT_LT(relative_l2(one, y_on_cpu(trial)), 1.2 * GetParam().tolerance().relative_l2);
  for (const int ranks : {2, 4, 8}) {
    SCOPED_TRACE(ranks);
    const std::string y = y_on_card(trial, ragged(ranks), options);
    EXPECT_TRUE(y == one) << (y.size() == one.size() ? "other bits" : y);
  }
}

// Any number of SMs, any hint, a small pool: the same bits.
TEST_P(ForwardOnCard, DoesNotDependOnWorkersPlansOrThePool) {
  const Trial trial(middling(1));
  const LayerOptions options = card_options();
  const std::string expected = y_on_card(trial, {96}, options);
  for (const int num_sms : {1, 2, 3, 7, 66, 131, 132}) {
    SCOPED_TRACE(num_sms);
    if (num_sms == 1 && !GetParam().has_fast()) continue;  // Blackwell takes pairs
    LayerOptions some = options;
    some.num_sms = num_sms;
    EXPECT_TRUE(y_on_card(trial, {96}, some) == expected);
  }
  for (const int hint : {1, 40, 96}) {
    SCOPED_TRACE(hint);
    LayerOptions some = options;
    some.expected_tokens = hint;
    EXPECT_TRUE(y_on_card(trial, {96}, some) == expected);
  }
  LayerOptions small = options;
  small.pool_rows = 384;
  EXPECT_TRUE(y_on_card(trial, {96}, small) == expected);
}

// Every height of tile of every machine, by the hint, against fp64.
TEST_P(ForwardOnCard, GivesTheSameBitsWithTilesOfEveryHeight) {
  const Problem problem{
      .experts = 2, .topk = 2, .hidden = 288, .intermediate = 160, .capacity = 300};
  const Trial trial(problem);
  LayerOptions options = card_options();
  const std::string expected = y_on_card(trial, {300}, options);
  const Comparison comparison = judged(trial, expected, GetParam().tolerance());
  EXPECT_TRUE(comparison.agrees()) << comparison.explain();
  for (const int hint : {4, 10, 20, 40, 60, 90, 300}) {
    SCOPED_TRACE(hint);
    options.expected_tokens = hint;
    EXPECT_TRUE(y_on_card(trial, {300}, options) == expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Machines,
                         ForwardOnCard,
                         testing::Values(kHopper, kExactHopper, kEmulatedBlackwell),
                         name_of);

class LayersOnCard : public OnCard {};

// Ranks spread over all cards there are.
TEST_P(LayersOnCard, RanksOnSeveralCardsGiveTheSameBits) {
  int cards = 0;
  expect_cuda(cudaGetDeviceCount(&cards), "cudaGetDeviceCount");
  if (cards < 2) GTEST_SKIP() << "there is one card here";
  const Trial trial(middling(1));
  LayerOptions spread = card_options();
  spread.device = -1;
  const std::string one = y_on_card(trial, {96}, spread);
  for (const int ranks : {2, 4})
    EXPECT_TRUE(y_on_card(trial, ragged(ranks), spread) == one) << ranks;
}

TEST_P(LayersOnCard, SiblingsKeepTheirOwnWeights) {
  const Trial first(middling(2), 1);
  const Trial second(middling(2), 2);
  const auto run = [&](bool is_sibling) {
    const auto result = launch_threads(2, [&](Group group) {
      Layer layer(group, first.problem(), card_options());
      Layer other = is_sibling ? layer.sibling() : Layer(group, first.problem(), card_options());
      first.set_experts(layer, group.rank());
      second.set_experts(other, group.rank());
      std::string y;
      for (int round = 0; round < 3; ++round)
        y += first.forward(layer, round, 6) + second.forward(other, round, 6);
      return y;
    });
    return texts_of(result);
  };
  EXPECT_TRUE(run(true) == run(false));
}

// The caller's own device memory, whatever it held.
TEST_P(LayersOnCard, RunInMemoryOfTheCallersOwn) {
  const Trial trial(middling(2));
  LayerOptions options = card_options();
  const std::string expected = y_on_card(trial, {50, 46}, options);
  options.memory.bytes = Layer::symmetric_bytes(trial.problem(), options);
  const CardMemory first(options.memory.bytes);
  const CardMemory second(options.memory.bytes);
  options.memory.bases = {first.as(), second.as()};
  EXPECT_TRUE(y_on_card(trial, {50, 46}, options) == expected);
  EXPECT_TRUE(first.is_whole() && second.is_whole());
  std::vector<std::byte> host(8192);
  options.memory.bases[1] = host.data();
  EXPECT_NE(y_on_card(trial, {50, 46}, options).find("memory.bases"), std::string::npos);
}

TEST_P(LayersOnCard, BiasesAndTheOtherActivationAgreeWithFp64) {
  Problem problem = middling(1);
  problem.activation.kind = ActivationKind::kSwigluOai;
  problem.activation.fast_math = false;
  problem.hidden = 288;
  problem.intermediate = 160;
  const Trial trial(problem);
  const Comparison comparison =
      judged(trial, y_on_card(trial, {96}, card_options()), GetParam().tolerance());
  EXPECT_TRUE(comparison.agrees()) << comparison.explain();
}

INSTANTIATE_TEST_SUITE_P(Machines,
                         LayersOnCard,
                         testing::Values(kHopper, kExactHopper, kEmulatedBlackwell),
                         name_of);

}  // namespace
}  // namespace megamoe::test
