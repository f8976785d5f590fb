#include <ostream>

#include "check_stages.hpp"
#include "end_to_end.hpp"
#include "gpu_test.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

struct Case {
  const char* name;
  int hidden, intermediate, experts, topk, tokens, block_m;
  int ranks = 1;
  bool has_biases = false;
  ActivationKind kind = ActivationKind::kSwiglu;
  bool fast_math = true;
  std::int64_t pool_rows = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

class Forward : public GpuTest,
                public testing::WithParamInterface<std::tuple<sm90::Operands, Case>> {
 protected:
  const Case& kase() const { return std::get<1>(GetParam()); }
  bool is_exact() const { return std::get<0>(GetParam()) == sm90::Operands::kBfloat16; }

  Problem problem() const {
    Problem problem{.ranks = kase().ranks,
                    .experts = kase().experts,
                    .topk = kase().topk,
                    .hidden = kase().hidden,
                    .intermediate = kase().intermediate,
                    .capacity = kase().tokens + 3,
                    .has_biases = kase().has_biases};
    problem.activation.kind = kase().kind;
    problem.activation.fast_math = kase().fast_math;
    return problem;
  }

  void expect_good_stages(const DeviceLayer& layer,
                          int rank,
                          const std::vector<RandomInput>& inputs,
                          const RandomWeights& weights) const {
    const StageReport report = check_stages(layer, rank, inputs, weights);
    std::printf("  %-12s rank %d: linear 1 %.2e, linear 2 %.2e\n",
                kase().name,
                rank,
                report.activations.relative(),
                report.outputs.relative());
    EXPECT_EQ(report.wrong_pool_bytes, 0);
    EXPECT_EQ(report.wrong_headers, 0);
    EXPECT_EQ(report.wrong_sums, 0);
    // A code that flips because a sum was off by 1e-4 is off by a sixteenth: few do.
    EXPECT_LT(report.activations.relative(), is_exact() ? 0.002 : 0.02);
    EXPECT_LT(report.outputs.relative(), 3e-4);
  }
};

// Each stage of a call agrees with fp64 that was fed the machine's own codes, the whole agrees with
// the contract, a second call on the same memory gives the same bytes, and every counter is back at
// zero.
TEST_P(Forward, AgreesWithFp64StageByStage) {
  const RandomWeights weights = random_weights(problem(), 5, 42);
  DeviceLayer layer(problem(),
                    weights,
                    {.operands = std::get<0>(GetParam()),
                     .block_m = kase().block_m,
                     .pool_rows = kase().pool_rows});
  std::vector<RandomInput> inputs;
  for (int r = 0; r < kase().ranks; ++r) {
    inputs.push_back(
        random_input(problem(), std::max(0, kase().tokens - r), 7 + static_cast<unsigned>(r)));
    layer.set_input(r, inputs.back());
  }
  const int workers = device_workers() / kase().ranks;
  layer.poison();
  layer.forward(workers);
  std::vector<std::vector<Bfloat16>> first;
  for (int r = 0; r < kase().ranks; ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    first.push_back(layer.output(r));
    if (kase().pool_rows == 0) expect_good_stages(layer, r, inputs, weights);
    const Distance whole = check_end_to_end(layer, r, inputs[static_cast<std::size_t>(r)], weights);
    std::printf("  %-12s rank %d: whole %.2e\n", kase().name, r, whole.relative());
    EXPECT_LT(whole.relative(), is_exact() ? 0.001 : 0.010);
  }
  layer.poison();
  layer.forward(workers);
  for (int r = 0; r < kase().ranks; ++r) {
    EXPECT_TRUE(same_bits(layer.output(r), first[static_cast<std::size_t>(r)])) << "rank " << r;
    EXPECT_TRUE(layer.counters_are_zero(r)) << "rank " << r;
  }
  EXPECT_TRUE(layer.is_intact());
}

constexpr Case kCases[] = {
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
     .kind = ActivationKind::kSwigluOai,
     .fast_math = false},
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
