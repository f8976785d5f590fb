#include "cli/judge.hpp"

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "cli/progress.hpp"

namespace megamoe::cli {
namespace {

constexpr std::int64_t kMostCompared = 256;  // tokens

/// Some tokens of an input and what a machine made of them, side by side.
struct Sample {
  std::vector<std::uint8_t> codes, scales;
  std::vector<std::int64_t> ids;
  std::vector<float> weights;
  std::vector<Bfloat16> y;
};

Sample sample_of(const LayerRun& run, std::span<const Bfloat16> y, std::int64_t count) {
  const auto hidden = static_cast<std::size_t>(run.problem.hidden);
  const auto topk = static_cast<std::size_t>(run.problem.topk);
  const auto tokens = static_cast<std::size_t>(count);
  Sample sample{.codes = std::vector<std::uint8_t>(tokens * hidden),
                .scales = std::vector<std::uint8_t>(tokens * hidden / 32),
                .ids = std::vector<std::int64_t>(tokens * topk),
                .weights = std::vector<float>(tokens * topk),
                .y = std::vector<Bfloat16>(tokens * hidden)};
  for (std::size_t i = 0; i < tokens; ++i) {
    const std::int64_t token = static_cast<std::int64_t>(i) * run.total_tokens() / count;
    run.input->read_rows(
        token, 1, sample.codes.data() + i * hidden, sample.scales.data() + i * hidden / 32);
    run.input->read_routing(
        token, 1, sample.ids.data() + i * topk, sample.weights.data() + i * topk);
    std::copy_n(y.begin() + token * run.problem.hidden,
                hidden,
                sample.y.begin() + static_cast<std::ptrdiff_t>(i * hidden));
  }
  return sample;
}

nlohmann::ordered_json cell_json(const ComparedCell& cell) {
  return {{"token", cell.token},
          {"column", cell.column},
          {"got", cell.got},
          {"wanted", cell.wanted},
          {"bound", cell.bound}};
}

}  // namespace

std::string Judgement::explain() const {
  const std::string which =
      compared_tokens == total_tokens
          ? sentence("all ", total_tokens, " tokens")
          : sentence(compared_tokens, " of ", total_tokens, " tokens, evenly spread");
  return which + ": " + comparison.explain();
}

nlohmann::ordered_json Judgement::to_json() const {
  return {{"agrees", agrees()},
          {"compared_tokens", compared_tokens},
          {"total_tokens", total_tokens},
          {"relative_l2", comparison.relative_l2},
          {"relative_l2_bound", comparison.tolerance.relative_l2},
          {"cells_beyond_bound", comparison.cells_beyond_bound},
          {"nonfinite_cells", comparison.nonfinite_cells},
          {"nonfinite_mismatches", comparison.nonfinite_mismatches},
          {"worst_cell", cell_json(comparison.worst)}};
}

Tolerance tolerance_of(const std::string& machine) {
  const std::string_view ending = "/fast";
  const bool is_fast = machine.size() >= ending.size() &&
                       machine.compare(machine.size() - ending.size(), ending.size(), ending) == 0;
  return is_fast ? kRegroupedTolerance : kExactTolerance;
}

Judgement judge(const LayerRun& run, std::span<const Bfloat16> y, const Tolerance& tolerance) {
  const std::int64_t count = std::min(kMostCompared, run.total_tokens());
  const Sample sample = sample_of(run, y, count);
  const auto rows = static_cast<std::uint64_t>(count * run.problem.topk);
  Progress progress("token-expert pairs of the reference", rows);
  ReferenceOptions options;
  options.progress = [&](std::int64_t done, std::int64_t) {
    progress.advance_to(static_cast<std::uint64_t>(done));
  };
  const ReferenceOutput wanted = reference_forward(run.problem,
                                                   *run.weights,
                                                   {.num_tokens = count,
                                                    .codes = sample.codes.data(),
                                                    .scales = sample.scales.data(),
                                                    .ids = sample.ids.data(),
                                                    .routing_weights = sample.weights.data()},
                                                   options);
  return {.comparison = compare(sample.y, wanted, run.problem.hidden, tolerance),
          .compared_tokens = count,
          .total_tokens = run.total_tokens()};
}

}  // namespace megamoe::cli
