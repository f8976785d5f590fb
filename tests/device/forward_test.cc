#include <gtest/gtest.h>

#include <cstring>

#include "check_stages.hpp"

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

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

int device_workers() {
  int count = 0;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

class Forward : public testing::TestWithParam<std::tuple<sm90::Operands, Case>> {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "there is no GPU here";
  }
};

// Each stage of a call agrees with fp64 that was fed the machine's own codes, the whole agrees with the contract,
// a second call on the same memory gives the same bytes, and every counter is back at zero.
TEST_P(Forward, AgreesWithFp64StageByStage) {
  const auto& [operands, c] = GetParam();
  Problem problem{.ranks = c.ranks,
                  .experts = c.experts,
                  .topk = c.topk,
                  .hidden = c.hidden,
                  .intermediate = c.intermediate,
                  .capacity = c.tokens + 3,
                  .has_biases = c.has_biases};
  problem.activation.kind = c.kind;
  problem.activation.fast_math = c.fast_math;
  const RandomWeights weights = random_weights(problem, 5, 42);
  DeviceLayer layer(problem,
                    weights,
                    {.operands = operands, .block_m = c.block_m, .pool_rows = c.pool_rows});
  std::vector<RandomInput> inputs;
  for (int r = 0; r < c.ranks; ++r) {
    inputs.push_back(random_input(problem, std::max(0, c.tokens - r), 7 + static_cast<unsigned>(r)));
    layer.set_input(r, inputs.back());
  }
  const int workers = device_workers() / c.ranks;
  layer.forward(workers);
  const bool is_exact = operands == sm90::Operands::kBfloat16;
  std::vector<std::vector<Bfloat16>> first;
  for (int r = 0; r < c.ranks; ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    first.push_back(layer.output(r));
    if (c.pool_rows == 0) {
      const StageReport report = check_stages(layer, r, inputs, weights);
      std::printf("  %-28s rank %d %s: pool %ld headers %ld L1 %.2e L2 %.2e sums %ld\n",
                  c.name,
                  r,
                  is_exact ? "bf16" : "fp8 ",
                  static_cast<long>(report.wrong_pool_bytes),
                  static_cast<long>(report.wrong_headers),
                  report.activations.relative(),
                  report.outputs.relative(),
                  static_cast<long>(report.wrong_sums));
      EXPECT_EQ(report.wrong_pool_bytes, 0);
      EXPECT_EQ(report.wrong_headers, 0);
      EXPECT_EQ(report.wrong_sums, 0);
      // A code that flips because a sum was off by 1e-4 is off by a sixteenth: few do.
      EXPECT_LT(report.activations.relative(), is_exact ? 0.002 : 0.02);
      EXPECT_LT(report.outputs.relative(), 3e-4);
    }
    const Distance whole =
        check_end_to_end(layer, r, inputs[static_cast<std::size_t>(r)], weights);
    std::printf("  %-28s rank %d whole %.2e\n", c.name, r, whole.relative());
    EXPECT_LT(whole.relative(), is_exact ? 0.002 : 0.010);
  }
  layer.forward(workers);
  for (int r = 0; r < c.ranks; ++r) {
    const std::vector<Bfloat16> again = layer.output(r);
    EXPECT_EQ(std::memcmp(again.data(),
                          first[static_cast<std::size_t>(r)].data(),
                          again.size() * sizeof(Bfloat16)),
              0);
    const Workspace& w = layer.workspace();
    const auto count = static_cast<std::size_t>(layer.args(r).call.ring.blocks);
    for (const auto& counter : layer.read(r, w.arrived, count))
      ASSERT_EQ(counter.value, 0U);
    for (const auto& counter : layer.read(r, w.ready, count))
      ASSERT_EQ(counter.value, 0U);
    for (const auto& counter : layer.read(r, w.received_sum, 1))
      ASSERT_EQ(counter.value, 0U);
  }
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
    {"v3_192", 7168, 2048, 4, 2, 380, 192},
    {"odd192", 1056, 1440, 3, 2, 300, 192},
    {"many_64", 1024, 512, 32, 4, 500, 64},
    {"many_128", 1024, 512, 16, 4, 900, 128},
    {"many_192", 1024, 544, 16, 4, 900, 192},
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

INSTANTIATE_TEST_SUITE_P(Float8,
                         Forward,
                         testing::Combine(testing::Values(sm90::Operands::kFloat8),
                                          testing::ValuesIn(kCases)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Bfloat16,
                         Forward,
                         testing::Combine(testing::Values(sm90::Operands::kBfloat16),
                                          testing::ValuesIn(kCases)),
                         name_of);

}  // namespace
}  // namespace megamoe::test
