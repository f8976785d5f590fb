// One small call of one rank for each operand kind: little enough for compute-sanitizer, which
// watches every access of every thread (sanitize.sh).
#include "device_layer.hpp"
#include "gpu_test.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

class SmallCall : public GpuTest, public testing::WithParamInterface<sm90::Operands> {};

TEST_P(SmallCall, AgreesWithFp64) {
  const Problem problem{.experts = 4,
                        .topk = 2,
                        .hidden = 160,
                        .intermediate = 96,
                        .capacity = 6,
                        .has_biases = true};
  const RandomWeights weights = random_weights(problem, 3, 3);
  const RandomInput input = random_input(problem, 5, 4);
  const ReferenceOutput reference = reference_forward(problem, weights.view(), view_of(input));
  for (const int block_m : {8, 64}) {
    // A watched kernel is a thousand times slower.
    DeviceLayer layer(
        problem, weights, {.operands = GetParam(), .block_m = block_m, .timeout_ms = 60'000});
    layer.set_input(0, input);
    layer.forward(4);
    const Comparison comparison =
        compare(layer.output(0), reference, problem.hidden, tolerance_of(GetParam()));
    EXPECT_TRUE(comparison.agrees()) << comparison.explain();
    EXPECT_TRUE(layer.is_intact());
  }
}

std::string name_of(const testing::TestParamInfo<sm90::Operands>& info) {
  return info.param == sm90::Operands::kFloat8 ? "fp8" : "bf16";
}

INSTANTIATE_TEST_SUITE_P(Hopper,
                         SmallCall,
                         testing::Values(sm90::Operands::kFloat8, sm90::Operands::kBfloat16),
                         name_of);

}  // namespace
}  // namespace megamoe::test
