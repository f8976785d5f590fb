// The same call on the CPU machine, through the library: counts bit for bit, outputs within what
// the two may differ by.
#include "cpu_machine.hpp"
#include "device_layer.hpp"
#include "gpu_test.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

class Agreement : public GpuTest,
                  public testing::WithParamInterface<std::tuple<sm90::Operands, int>> {};

TEST_P(Agreement, WithTheCpuMachine) {
  const auto [operands, ranks] = GetParam();
  const Problem problem{.ranks = ranks,
                        .experts = 16,
                        .topk = 4,
                        .hidden = 1024,
                        .intermediate = 480,
                        .capacity = 50};
  const RandomWeights weights = random_weights(problem, 5, 91);
  std::vector<RandomInput> inputs;
  DeviceLayer layer(problem, weights, {.operands = operands, .block_m = 32});
  for (int r = 0; r < ranks; ++r) {
    inputs.push_back(random_input(problem, 50 - 7 * r, 92 + static_cast<unsigned>(r)));
    layer.set_input(r, inputs.back());
  }
  const CpuResult cpu = run_on_cpu(problem, weights, inputs);
  layer.poison();
  layer.forward(device_workers() / ranks);
  for (int r = 0; r < ranks; ++r) {
    SCOPED_TRACE(testing::Message() << "rank " << r);
    const auto experts = static_cast<std::size_t>(problem.experts_per_rank());
    EXPECT_EQ(layer.read(r, layer.workspace().expert_rows, experts),
              cpu.expert_rows[static_cast<std::size_t>(r)]);
    ReferenceOutput of_cpu =
        reference_forward(problem, weights.view(), view_of(inputs[static_cast<std::size_t>(r)]));
    of_cpu.y = cpu.outputs[static_cast<std::size_t>(r)];
    // Each of the two may be off by its own share.
    Tolerance tolerance = tolerance_of(operands);
    tolerance.relative_l2 += kExactTolerance.relative_l2;
    tolerance.cell_factor += kExactTolerance.cell_factor;
    const RowDistances rows = row_distances(layer.output(r), of_cpu, problem.hidden, tolerance);
    std::printf("  rank %d against the CPU machine: rows %.2e, worst %.2e\n",
                r,
                rows.all.relative(),
                rows.worst);
    EXPECT_LT(rows.all.relative(), tolerance.relative_l2);
    EXPECT_EQ(rows.cells_beyond_bound, 0) << "worst token " << rows.worst_token;
  }
}

std::string name_of(const testing::TestParamInfo<Agreement::ParamType>& info) {
  const auto& [operands, ranks] = info.param;
  return (operands == sm90::Operands::kFloat8 ? "fp8_" : "bf16_") + std::to_string(ranks) +
         "_ranks";
}

INSTANTIATE_TEST_SUITE_P(Hopper,
                         Agreement,
                         testing::Combine(testing::Values(sm90::Operands::kFloat8,
                                                          sm90::Operands::kBfloat16),
                                          testing::Values(1, 4)),
                         name_of);

}  // namespace
}  // namespace megamoe::test
