#include <cstring>

#include "emulated_pool_image.hpp"
#include "whole_call.hpp"

// Blackwell's kernel, whole calls of it, on a Hopper card through the emulation.
namespace megamoe::test {
namespace {

constexpr emulation::Modes kPlain{};
constexpr emulation::Modes kJitter{.has_jitter = true};
constexpr emulation::Modes kDeferredAndJitter{.is_deferred = true, .has_jitter = true};

struct Case {
  CallCase call;
  int workers = 8;
  int experts_per_wave = 1 << 20;
  emulation::Modes modes{};
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.call;
}

class EmulatedForward : public GpuTest, public testing::WithParamInterface<Case> {
 protected:
  // Sums are exact but for their order: hardly any code flips.
  static constexpr CallBounds kBounds{0.002, 1e-5, 0.002};
};

TEST_P(EmulatedForward, AgreesWithFp64StageByStage) {
  const auto& [call, workers, experts_per_wave, modes] = GetParam();
  const int block_m = call.block_m;
  const RandomWeights weights = random_weights(call.problem(), 5, 42);
  EmulatedLayer layer(call.problem(),
                      weights,
                      {.block_m = block_m,
                       .experts_per_wave = experts_per_wave,
                       .pool_rows = call.pool_rows,
                       .workers = workers,
                       .modes = modes});
  const auto check_stages = [&](int rank, const std::vector<RandomInput>& inputs) {
    const auto image_of = [&](int blocks) { return EmulatedPoolImage(layer, rank, blocks); };
    return StageCheck<EmulatedPoolImage>(layer, {rank, block_m}, inputs, weights, image_of).run();
  };
  expect_good_calls(
      layer, call, weights, kBounds, [&] { layer.forward(); }, check_stages);
}

constexpr Case kCases[] = {
    {.call = {"tiny16", 128, 128, 4, 2, 5, 16}, .workers = 2},
    {.call = {"odd16", 160, 96, 6, 3, 9, 16}},
    {.call = {"odd32", 416, 352, 6, 3, 40, 32}},
    {.call = {"one_token", 256, 128, 4, 2, 1, 16}, .workers = 2},
    {.call = {"no_tokens", 256, 128, 4, 2, 0, 16}, .workers = 2},
    {.call = {"small64", 512, 256, 4, 2, 75, 64}},
    {.call = {"small96", 512, 256, 4, 2, 120, 96}},
    {.call = {"small128", 384, 256, 4, 2, 150, 128}},
    {.call = {"small192", 384, 256, 3, 2, 190, 192}},
    {.call = {"odd192", 1056, 480, 3, 2, 300, 192}, .workers = 16},
    {.call = {"many16", 512, 256, 32, 4, 60, 16}, .workers = 132},
    {.call = {"many64", 1024, 512, 16, 4, 250, 64}, .workers = 132},
    {.call = {"waves32", 512, 256, 12, 3, 64, 32}, .workers = 6, .experts_per_wave = 2},
    {.call = {.name = "oai_bias_32",
              .hidden = 736,
              .intermediate = 352,
              .experts = 4,
              .topk = 2,
              .tokens = 40,
              .block_m = 32,
              .has_biases = true,
              .activation = {.kind = ActivationKind::kSwigluOai, .fast_math = false}}},
    {.call = {.name = "clamp_precise",
              .hidden = 256,
              .intermediate = 256,
              .experts = 4,
              .topk = 2,
              .tokens = 30,
              .block_m = 16,
              .has_biases = true,
              .activation = {.clamp = 0.5F, .fast_math = false}}},
    {.call = {.name = "ring_16",
              .hidden = 256,
              .intermediate = 128,
              .experts = 8,
              .topk = 4,
              .tokens = 300,
              .block_m = 16,
              .pool_rows = 384},
     .workers = 16},
    {.call = {.name = "ranks2_32",
              .hidden = 512,
              .intermediate = 256,
              .experts = 8,
              .topk = 4,
              .tokens = 40,
              .block_m = 32,
              .ranks = 2},
     .workers = 16},
    {.call = {.name = "ranks4_96",
              .hidden = 512,
              .intermediate = 256,
              .experts = 8,
              .topk = 4,
              .tokens = 90,
              .block_m = 96,
              .ranks = 4},
     .workers = 16},
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return info.param.call.name;
}

std::vector<Case> with(const emulation::Modes& modes, std::initializer_list<const char*> names) {
  std::vector<Case> chosen;
  for (Case c : kCases) {
    const bool is_chosen = std::any_of(names.begin(), names.end(), [&](const char* name) {
      return std::strcmp(name, c.call.name) == 0;
    });
    c.modes = modes;
    if (is_chosen || names.size() == 0) chosen.push_back(c);
  }
  return chosen;
}

INSTANTIATE_TEST_SUITE_P(Plain, EmulatedForward, testing::ValuesIn(with(kPlain, {})), name_of);
INSTANTIATE_TEST_SUITE_P(
    Jitter,
    EmulatedForward,
    testing::ValuesIn(with(
        kJitter, {"odd16", "odd32", "small64", "small192", "oai_bias_32", "ranks2_32", "ring_16"})),
    name_of);
INSTANTIATE_TEST_SUITE_P(
    DeferredAndJitter,
    EmulatedForward,
    testing::ValuesIn(with(
        kDeferredAndJitter,
        {"tiny16", "odd32", "small96", "small128", "odd192", "many16", "ranks4_96", "ring_16"})),
    name_of);

}  // namespace
}  // namespace megamoe::test
