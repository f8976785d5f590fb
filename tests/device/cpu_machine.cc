#include "cpu_machine.hpp"

#include <algorithm>
#include <thread>

#include "megamoe/megamoe.hpp"

namespace megamoe::test {

CpuResult run_on_cpu(const Problem& problem,
                     const RandomWeights& weights,
                     const std::vector<RandomInput>& inputs) {
  const auto ranks = static_cast<std::size_t>(problem.ranks);
  CpuResult result{std::vector<std::vector<Bfloat16>>(ranks),
                   std::vector<std::vector<std::uint32_t>>(ranks)};
  std::vector<Group> groups = Group::in_process(problem.ranks);
  // Ranks wait for each other: each needs a thread of its own, however few cores there are.
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      LayerOptions options;
      options.machine = "cpu";
      Layer layer(groups[r], problem, options);
      for (int e = 0; e < problem.experts_per_rank(); ++e)
        layer.set_expert(
            e,
            weights.view().expert(static_cast<int>(r) * problem.experts_per_rank() + e, problem));
      const RandomInput& input = inputs[r];
      const LayerInputs into = layer.inputs();
      std::copy(input.codes.begin(), input.codes.end(), into.tokens.begin());
      std::copy(input.scales.begin(), input.scales.end(), into.token_scales.begin());
      std::copy(input.ids.begin(), input.ids.end(), into.topk_ids.begin());
      std::copy(input.weights.begin(), input.weights.end(), into.topk_weights.begin());
      // 16-byte aligned: an allocation of the vector's is.
      std::vector<Bfloat16>& y = result.outputs[r];
      y.resize(static_cast<std::size_t>(input.tokens) * static_cast<std::size_t>(problem.hidden));
      const CallReport report = layer.forward(
          {.num_tokens = input.tokens, .output = reinterpret_cast<std::uint16_t*>(y.data())});
      result.expert_rows[r] = report.expert_rows;
    });
  threads.clear();  // waits
  return result;
}

}  // namespace megamoe::test
