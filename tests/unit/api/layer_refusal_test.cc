#include <gtest/gtest.h>

#include <limits>

#include "trial.hpp"

// Input that a rank refuses: all ranks say the same, nothing is written, and the next call is as
// good as ever. And layers that are not made at all.

namespace megamoe {
namespace {

constexpr std::uint16_t kUntouched = 0xABCD;

/// What rank 1 does wrong.
struct Mistake {
  std::int64_t num_tokens = 4;
  std::int64_t id = 0;      ///< of token 2, slot 1
  bool is_shifted = false;  ///< its output
  bool lacks_expert = false;
};

/// Every rank's sentence for a call with the mistake; "" where y was touched or the call after it
/// gave other bits than a layer that never saw the mistake.
std::vector<std::string> sentences_for(const Mistake& mistake) {
  const Trial trial(Trial::small(2));
  const auto result = launch_threads(2, [&](Group group) {
    const bool is_wrong = group.rank() == 1;
    Layer layer(group, trial.problem(), test_options());
    if (!(is_wrong && mistake.lacks_expert)) trial.set_experts(layer, group.rank());
    trial.set_tokens(layer, 0, 4);
    if (is_wrong) layer.inputs().topk_ids[2 * 3 + 1] = mistake.id;
    std::vector<std::uint16_t> y(25 * 64 + 8, kUntouched);
    const bool is_shifted = is_wrong && mistake.is_shifted;
    const std::int64_t num_tokens = is_wrong ? mistake.num_tokens : 4;
    const std::string sentence = thrown_by([&] {
      layer.forward({num_tokens, y.data() + (is_shifted ? 1 : 0)});
    });
    if (y != std::vector<std::uint16_t>(25 * 64 + 8, kUntouched)) return std::string("y touched");
    trial.set_experts(layer, group.rank());
    const std::string after = trial.forward(layer, 0, 5);
    Layer fresh(group, trial.problem(), test_options());
    trial.set_experts(fresh, group.rank());
    return after == trial.forward(fresh, 0, 5) ? sentence : "the next call went wrong";
  });
  return texts_of(result);
}

std::vector<std::string> both(const std::string& sentence) {
  return {sentence, sentence};
}

// W13
TEST(LayerRefusal, MoreTokensThanCapacity) {
  EXPECT_EQ(sentences_for({.num_tokens = 25}),
            both("invalid argument: num_tokens is 25 on rank 1; the layer was made for 0 to 24"));
  EXPECT_EQ(sentences_for({.num_tokens = -1}),
            both("invalid argument: num_tokens is -1 on rank 1; the layer was made for 0 to 24"));
  EXPECT_EQ(
      sentences_for({.num_tokens = std::int64_t{1} << 32}),
      both("invalid argument: num_tokens is 4294967296 on rank 1; the layer was made for 0 to "
           "24"));
}

// W15
TEST(LayerRefusal, IdsPastTheLastExpert) {
  for (const std::int64_t id : {std::int64_t{4}, std::int64_t{5}, INT64_MAX, std::int64_t{1} << 32})
    EXPECT_EQ(
        sentences_for({.id = id}),
        both("invalid argument: topk_ids of rank 1, token 2, slot 1 is " + std::to_string(id) +
             "; the layer has experts 0 to 3, and ids below 0 are masked"));
}

TEST(LayerRefusal, OutputThatIsMisaligned) {
  const auto sentences = sentences_for({.is_shifted = true});
  EXPECT_EQ(sentences[0], sentences[1]);
  EXPECT_NE(sentences[0].find("output of rank 1 is at address "), std::string::npos)
      << sentences[0];
}

TEST(LayerRefusal, ExpertWithoutWeights) {
  EXPECT_EQ(sentences_for({.lacks_expert = true}),
            both("invalid argument: local expert 0 of rank 1 (expert 2) has no weights yet"));
}

// W15: below zero is masked, whatever the number.
TEST(LayerRefusal, IdsBelowZeroAreMaskedAndNotExpertZero) {
  const Trial trial(Trial::small(1));
  const auto result = launch_threads(1, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    trial.set_experts(layer, 0);
    trial.set_tokens(layer, 0, 1);
    const LayerInputs in = layer.inputs();
    const auto y_with = [&](std::int64_t id) {
      in.topk_ids[0] = id;
      in.topk_ids[1] = 1;
      std::vector<std::uint16_t> y(64);
      in.topk_weights[0] = id < 0 ? std::numeric_limits<float>::quiet_NaN() : 0.5F;
      layer.forward({1, y.data()});
      return y;
    };
    const auto masked = y_with(-1);
    if (masked == y_with(0)) return std::string("-1 is taken for expert 0");
    for (const std::int64_t id : {std::int64_t{-2}, std::int64_t{-1} << 32, INT64_MIN})
      if (y_with(id) != masked) return "not masked: " + std::to_string(id);
    return std::string("masked");
  });
  EXPECT_EQ(texts_of(result).front(), "masked");
}

TEST(LayerRefusal, SetExpertNamesWhatIsWrong) {
  const Trial trial(Trial::small(1));
  auto groups = Group::in_process(1);
  Layer layer(groups[0], trial.problem(), test_options());
  const std::vector<std::uint8_t> bytes(2 * 64 * 96);
  const WeightView good{bytes.data(), bytes.data(), bytes.data(), bytes.data(), nullptr, nullptr};
  EXPECT_EQ(thrown_by([&] { layer.set_expert(2, good); }),
            "invalid argument: local_expert is 2; a rank has experts 0 to 1");
  WeightView bad = good;
  bad.linear2_scale = nullptr;
  EXPECT_EQ(thrown_by([&] { layer.set_expert(0, bad); }),
            "invalid argument: weights: linear2_scale is null");
  const std::vector<float> bias(2 * 96);
  bad = good;
  bad.linear1_bias = bias.data();
  EXPECT_EQ(thrown_by([&] { layer.set_expert(0, bad); }),
            "invalid argument: weights: linear1_bias and linear2_bias must be null: the layer has "
            "no biases");
}

/// What every rank says when rank 1 makes its layer otherwise.
std::vector<std::string> sentences_when(
    const std::function<void(Problem&, LayerOptions&)>& change) {
  const auto result = launch_threads(3, [&](Group group) {
    Problem problem = Trial::small(3);
    LayerOptions options = test_options();
    if (group.rank() == 1) change(problem, options);
    return thrown_by([&] { Layer(group, problem, options); });
  });
  return texts_of(result);
}

// H10, W19: each field that must be the same, with both values, on every rank.
TEST(LayerRefusal, RanksThatDisagreeAreToldAboutWhat) {
  struct Case {
    const char* field;
    const char* values;
    std::function<void(Problem&, LayerOptions&)> change;
  };
  const Case cases[] = {
      {"capacity", "24 on rank 0, 25 on rank 1", [](Problem& p, auto&) { p.capacity = 25; }},
      {"experts", "6 on rank 0, 9 on rank 1", [](Problem& p, auto&) { p.experts = 9; }},
      {"topk", "3 on rank 0, 2 on rank 1", [](Problem& p, auto&) { p.topk = 2; }},
      {"hidden", "64 on rank 0, 96 on rank 1", [](Problem& p, auto&) { p.hidden = 96; }},
      {"intermediate",
       "96 on rank 0, 64 on rank 1",
       [](Problem& p, auto&) { p.intermediate = 64; }},
      {"has_biases", "0 on rank 0, 1 on rank 1", [](Problem& p, auto&) { p.has_biases = true; }},
      {"activation",
       "swiglu on rank 0, swiglu-oai on rank 1",
       [](Problem& p, auto&) { p.activation.kind = ActivationKind::kSwigluOai; }},
      {"clamp", "inf on rank 0, 10 on rank 1", [](Problem& p, auto&) { p.activation.clamp = 10; }},
      {"alpha",
       "1.70200002 on rank 0, 1.5 on rank 1",
       [](Problem& p, auto&) { p.activation.alpha = 1.5F; }},
      {"limit", "7 on rank 0, 6 on rank 1", [](Problem& p, auto&) { p.activation.limit = 6; }},
      {"fast_math",
       "1 on rank 0, 0 on rank 1",
       [](Problem& p, auto&) { p.activation.fast_math = false; }},
      {"pool_rows",
       "768 on rank 0, 384 on rank 1",
       [](Problem&, LayerOptions& o) { o.pool_rows = 384; }},
  };
  for (const Case& c : cases) {
    const std::string expected = std::string("invalid argument: ranks 0 and 1 disagree on ") +
                                 c.field + " of the layer: " + c.values;
    EXPECT_EQ(sentences_when(c.change), std::vector<std::string>(3, expected));
  }
}

TEST(LayerRefusal, RanksOfDifferentInstructionSetsAreTold) {
  const auto sentences =
      sentences_when([](Problem&, LayerOptions& o) { o.instruction_set = "scalar"; });
  EXPECT_NE(sentences[2].find("disagree on machine of the layer: cpu/"), std::string::npos)
      << sentences[2];
}

// What only a GPU has is refused by name, and the layer stays usable.
TEST(LayerRefusal, TheCpuHasNoStreamsAndNoSms) {
  const Trial trial(Trial::small(1));
  auto groups = Group::in_process(1);
  Layer layer(groups[0], trial.problem(), test_options());
  trial.set_experts(layer, 0);
  const std::string expected = trial.forward(layer, 0, 5);
  alignas(16) std::uint16_t y[64];
  for (const std::string& sentence :
       {thrown_by([&] { layer.enqueue({.output = y}); }), thrown_by([&] { layer.wait(nullptr); })})
    EXPECT_EQ(sentence,
              "invalid argument: a stream is given; the cpu machine has none: forward() does the "
              "call");
  EXPECT_EQ(layer.device(), -1);
  EXPECT_EQ(trial.forward(layer, 0, 5), expected);
  const auto refused = [](auto change) {
    return sentences_when([&](Problem&, LayerOptions& o) { change(o); })[0];
  };
  EXPECT_NE(refused([](LayerOptions& o) { o.num_sms = 4; }).find("num_sms is 4; the cpu machine"),
            std::string::npos);
  EXPECT_NE(refused([](LayerOptions& o) { o.numerics = "fast"; }).find("unsupported machine: "),
            std::string::npos);
  EXPECT_NE(refused([](LayerOptions& o) { o.numerics = "loose"; }).find("there are fast and exact"),
            std::string::npos);
}

TEST(LayerRefusal, WhatOneRankCanNotMakeIsRefusedOnAll) {
  // Why it can't be made here depends on the build and on the computer.
  const auto absent = sentences_when([](Problem&, LayerOptions& o) { o.machine = "sm100"; });
  EXPECT_EQ(absent, std::vector<std::string>(3, absent[0]));
  EXPECT_EQ(absent[0].find("unsupported machine: rank 1: machine sm100 "), 0U) << absent[0];
  EXPECT_EQ(
      sentences_when([](Problem&, LayerOptions& o) { o.machine = "tpu"; }),
      std::vector<std::string>(3,
                               "invalid argument: rank 1: machine is \"tpu\"; there are auto, "
                               "cpu, sm90, sm100 and sm100-emulated"));
  EXPECT_EQ(sentences_when([](Problem& p, auto&) { p.ranks = 2; }),
            std::vector<std::string>(
                3, "invalid argument: rank 1: ranks of the problem is 2; the group has 3"));
  EXPECT_EQ(sentences_when([](Problem&, LayerOptions& o) { o.workers = -1; }),
            std::vector<std::string>(3,
                                     "invalid argument: rank 1: workers is -1; 1 to 1024 are "
                                     "possible, and 0 for as many as a rank's share of the cores"));
  const auto sentences = sentences_when([](Problem&, LayerOptions& o) { o.memory_budget = 1000; });
  EXPECT_EQ(sentences[0], sentences[2]);
  EXPECT_NE(sentences[0].find("the budget is 1000 B"), std::string::npos) << sentences[0];
}

TEST(LayerRefusal, AdoptedMemoryThatDoesNotDo) {
  EXPECT_EQ(sentences_when([](Problem&, LayerOptions& o) {
              o.memory = {std::vector<void*>(2, nullptr), 1U << 30};
            })[0],
            "invalid argument: rank 1: memory.bases has 2 addresses; the group has 3 ranks");
  EXPECT_NE(sentences_when([](Problem&, LayerOptions& o) {
              o.memory = {std::vector<void*>(3, reinterpret_cast<void*>(4096)), 4096};
            })[0]
                .find("memory.bytes is 4096; this layer needs "),
            std::string::npos);
}

}  // namespace
}  // namespace megamoe
