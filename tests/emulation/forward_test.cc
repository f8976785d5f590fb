#include <gtest/gtest.h>

#include <cstring>

#include "emulated_pool_image.hpp"
#include "end_to_end.hpp"
#include "gpu_test.hpp"

// Blackwell's kernel, whole calls of it, on a Hopper card through the emulation: stage by stage
// against fp64 fed with what the machine itself stored before, and as a whole.
namespace megamoe::test {
namespace {

constexpr emulation::Modes kPlain{};
constexpr emulation::Modes kJitter{.has_jitter = true};
constexpr emulation::Modes kDeferredAndJitter{.is_deferred = true, .has_jitter = true};

struct Case {
  const char* name;
  int hidden, intermediate, experts, topk, tokens, block_m;
  int workers = 8;
  int ranks = 1;
  emulation::Modes modes{};
  bool has_biases = false;
  ActivationKind kind = ActivationKind::kSwiglu;
  bool fast_math = true;
  float clamp = std::numeric_limits<float>::infinity();
  std::int64_t pool_rows = 0;
  int experts_per_wave = 1 << 20;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

class EmulatedForward : public GpuTest, public testing::WithParamInterface<Case> {
 protected:
  static Problem problem() {
    const Case& c = GetParam();
    Problem problem{.ranks = c.ranks,
                    .experts = c.experts,
                    .topk = c.topk,
                    .hidden = c.hidden,
                    .intermediate = c.intermediate,
                    .capacity = c.tokens + 3,
                    .has_biases = c.has_biases};
    problem.activation.kind = c.kind;
    problem.activation.fast_math = c.fast_math;
    problem.activation.clamp = c.clamp;
    return problem;
  }

  static void expect_good_stages(const EmulatedLayer& layer,
                                 int rank,
                                 const std::vector<RandomInput>& inputs,
                                 const RandomWeights& weights) {
    const StageReport report =
        StageCheck<EmulatedPoolImage>(
            layer,
            {rank, layer.options().block_m},
            inputs,
            weights,
            [&](int blocks) { return EmulatedPoolImage(layer, rank, blocks); })
            .run();
    std::printf("  %-14s rank %d: linear 1 %.2e, linear 2 %.2e\n",
                GetParam().name,
                rank,
                report.activations.relative(),
                report.outputs.relative());
    EXPECT_EQ(report.wrong_pool_bytes, 0);
    EXPECT_EQ(report.wrong_headers, 0);
    EXPECT_EQ(report.wrong_sums, 0);
    // A code that flips because a sum was off by 1e-7 is off by a sixteenth: hardly any do.
    EXPECT_LT(report.activations.relative(), 0.002);
    EXPECT_LT(report.outputs.relative(), 1e-5);
  }
};

// Each stage agrees with fp64 fed with the machine's own codes, the whole with the contract, a
// second call on the same memory gives the same bits, and every counter is back at zero.
TEST_P(EmulatedForward, AgreesWithFp64StageByStage) {
  const Case& c = GetParam();
  const RandomWeights weights = random_weights(problem(), 5, 42);
  EmulatedLayer layer(problem(),
                      weights,
                      {.block_m = c.block_m,
                       .experts_per_wave = c.experts_per_wave,
                       .pool_rows = c.pool_rows,
                       .workers = c.workers,
                       .modes = c.modes});
  std::vector<RandomInput> inputs;
  for (int r = 0; r < c.ranks; ++r) {
    inputs.push_back(
        random_input(problem(), std::max(0, c.tokens - 3 * r), 7 + static_cast<unsigned>(r)));
    layer.set_input(r, inputs.back());
  }
  layer.forward();
  std::vector<std::vector<Bfloat16>> first;
  for (int r = 0; r < c.ranks; ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    first.push_back(layer.output(r));
    if (c.pool_rows == 0) expect_good_stages(layer, r, inputs, weights);
    const Distance whole = check_end_to_end(layer, r, inputs[static_cast<std::size_t>(r)], weights);
    std::printf("  %-14s rank %d: whole %.2e\n", c.name, r, whole.relative());
    EXPECT_LT(whole.relative(), 0.002);
  }
  layer.poison();
  layer.forward();
  for (int r = 0; r < c.ranks; ++r) {
    const std::vector<Bfloat16> again = layer.output(r);
    const std::vector<Bfloat16>& before = first[static_cast<std::size_t>(r)];
    EXPECT_EQ(std::memcmp(again.data(), before.data(), again.size() * sizeof(Bfloat16)), 0);
    EXPECT_TRUE(layer.counters_are_zero(r));
  }
  EXPECT_TRUE(layer.is_intact());
}

constexpr Case kCases[] = {
    {"tiny16", 128, 128, 4, 2, 5, 16, 2},
    {"odd16", 160, 96, 6, 3, 9, 16},
    {"odd32", 416, 352, 6, 3, 40, 32},
    {"one_token", 256, 128, 4, 2, 1, 16, 2},
    {"no_tokens", 256, 128, 4, 2, 0, 16, 2},
    {"small64", 512, 256, 4, 2, 75, 64},
    {"small96", 512, 256, 4, 2, 120, 96},
    {"small128", 384, 256, 4, 2, 150, 128},
    {"small192", 384, 256, 3, 2, 190, 192},
    {"odd192", 1056, 480, 3, 2, 300, 192, 16},
    {"many16", 512, 256, 32, 4, 60, 16, 132},
    {"many64", 1024, 512, 16, 4, 250, 64, 132},
    {.name = "waves32",
     .hidden = 512,
     .intermediate = 256,
     .experts = 12,
     .topk = 3,
     .tokens = 64,
     .block_m = 32,
     .workers = 6,
     .experts_per_wave = 2},
    {.name = "oai_bias_32",
     .hidden = 736,
     .intermediate = 352,
     .experts = 4,
     .topk = 2,
     .tokens = 40,
     .block_m = 32,
     .has_biases = true,
     .kind = ActivationKind::kSwigluOai,
     .fast_math = false},
    {.name = "clamp_precise",
     .hidden = 256,
     .intermediate = 256,
     .experts = 4,
     .topk = 2,
     .tokens = 30,
     .block_m = 16,
     .has_biases = true,
     .fast_math = false,
     .clamp = 0.5F},
    {.name = "ring_16",
     .hidden = 256,
     .intermediate = 128,
     .experts = 8,
     .topk = 4,
     .tokens = 300,
     .block_m = 16,
     .workers = 16,
     .pool_rows = 384},
    {.name = "ranks2_32",
     .hidden = 512,
     .intermediate = 256,
     .experts = 8,
     .topk = 4,
     .tokens = 40,
     .block_m = 32,
     .workers = 16,
     .ranks = 2},
    {.name = "ranks4_96",
     .hidden = 512,
     .intermediate = 256,
     .experts = 8,
     .topk = 4,
     .tokens = 90,
     .block_m = 96,
     .workers = 16,
     .ranks = 4},
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

std::vector<Case> with(const emulation::Modes& modes, std::initializer_list<const char*> names) {
  std::vector<Case> chosen;
  for (Case c : kCases) {
    const bool is_chosen = std::any_of(names.begin(), names.end(), [&](const char* name) {
      return std::strcmp(name, c.name) == 0;
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
