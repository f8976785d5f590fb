#include "check_stages.hpp"
#include "whole_call.hpp"

// Hopper's kernels, whole calls of them.
namespace megamoe::test {
namespace {

class Forward : public GpuTest,
                public testing::WithParamInterface<std::tuple<sm90::Operands, CallCase>> {};

TEST_P(Forward, AgreesWithFp64StageByStage) {
  const auto& [operands, c] = GetParam();
  const CallBounds bounds = operands == sm90::Operands::kFloat8 ? CallBounds{0.02, 3e-4, 0.010}
                                                                : CallBounds{0.002, 3e-4, 0.001};
  const RandomWeights weights = random_weights(c.problem(), 5, 42);
  DeviceLayer layer(
      c.problem(), weights, {.operands = operands, .block_m = c.block_m, .pool_rows = c.pool_rows});
  const int workers = device_workers() / c.ranks;
  expect_good_calls(
      layer,
      c,
      weights,
      bounds,
      [&] { layer.forward(workers); },
      [&](int rank, const std::vector<RandomInput>& inputs) {
        return check_stages(layer, rank, inputs, weights);
      });
}

constexpr CallCase kCases[] = {
    {"tiny8", 128, 128, 4, 2, 5, 8},
    {"odd32", 160, 96, 6, 3, 9, 8},
    {"small16", 512, 256, 8, 4, 40, 16},
    {"h2880_16", 2880, 2880, 4, 2, 20, 16},
    {"i768_32", 2048, 768, 8, 4, 60, 32},
    {"v3_8", 7168, 2048, 4, 2, 8, 8},
    {"v3_32", 7168, 2048, 4, 2, 40, 32},
    {"h2048_64", 2048, 1024, 4, 2, 150, 64},
    {"h2880_96", 2880, 768, 4, 2, 170, 96},
    {"h2048_128", 2048, 768, 4, 2, 300, 128},
    {"v3_160", 7168, 2048, 4, 2, 380, 160},
    {"odd160", 1056, 1440, 3, 2, 300, 160},
    {"many_64", 1024, 512, 32, 4, 500, 64},
    {"many_128", 1024, 512, 16, 4, 900, 128},
    {"many_160", 1024, 544, 16, 4, 900, 160},
    {"many_8", 1024, 512, 64, 4, 60, 8},
    {.name = "oai_bias_16",
     .hidden = 2880,
     .intermediate = 2880,
     .experts = 4,
     .topk = 2,
     .tokens = 24,
     .block_m = 16,
     .has_biases = true,
     .activation = {.kind = ActivationKind::kSwigluOai, .fast_math = false}},
    {.name = "ring_16",
     .hidden = 512,
     .intermediate = 256,
     .experts = 8,
     .topk = 4,
     .tokens = 300,
     .block_m = 16,
     .pool_rows = 384},
    {.name = "ranks2_16",
     .hidden = 512,
     .intermediate = 256,
     .experts = 8,
     .topk = 4,
     .tokens = 40,
     .block_m = 16,
     .ranks = 2},
    {.name = "ranks8_32",
     .hidden = 1024,
     .intermediate = 256,
     .experts = 16,
     .topk = 4,
     .tokens = 60,
     .block_m = 32,
     .ranks = 8},
};

std::string name_of(const testing::TestParamInfo<Forward::ParamType>& info) {
  const auto& [operands, c] = info.param;
  return std::string(c.name) + (operands == sm90::Operands::kFloat8 ? "_fp8" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(Hopper,
                         Forward,
                         testing::Combine(testing::Values(sm90::Operands::kFloat8,
                                                          sm90::Operands::kBfloat16),
                                          testing::ValuesIn(kCases)),
                         name_of);

}  // namespace
}  // namespace megamoe::test
