// Four ranks, each a process with a quarter of the experts. Rank 3 then asks for an expert that
// does not exist, which every rank hears of, and all go on.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "megamoe/megamoe.hpp"

namespace {

constexpr int kRanks = 4;
constexpr int kTokens = 8;

megamoe::Problem make_problem() {
  megamoe::Problem problem;
  problem.ranks = kRanks;
  problem.experts = 16;
  problem.topk = 2;
  problem.hidden = 128;
  problem.intermediate = 64;
  problem.capacity = kTokens;
  return problem;
}

/// What each rank does, in its own process.
std::string run_rank(megamoe::Group group) {
  // 1. The layer is collective: all ranks make it, and are held to the same problem.
  const megamoe::Problem problem = make_problem();
  megamoe::Layer layer(group, problem);

  // 2. Each rank packs its own experts. These are all ones.
  const std::vector<std::uint8_t> codes(128 * 64, 0x22);
  const std::vector<std::uint8_t> scales(128 * 64 / 16, 120);
  for (int expert = 0; expert < problem.experts_per_rank(); ++expert)
    layer.set_expert(expert,
                     {codes.data(), scales.data(), codes.data(), scales.data(), nullptr, nullptr});

  // 3. Ranks may bring different numbers of tokens, none included.
  const int tokens = group.rank() == 0 ? 0 : kTokens;
  const std::vector<std::uint16_t> rows(kTokens * 128, 0x3F80);
  layer.set_tokens(0, tokens, rows.data());
  const megamoe::LayerInputs inputs = layer.inputs();
  for (std::size_t pair = 0; pair < kTokens * 2; ++pair) {
    inputs.topk_ids[pair] = static_cast<std::int64_t>(5 * pair + 1) % problem.experts;
    inputs.topk_weights[pair] = 0.5F;
  }
  std::vector<std::uint16_t> output(kTokens * 128);
  const megamoe::CallReport report = layer.forward({tokens, output.data()});

  // 4. A refused input: nothing is written, and the next call may come at once.
  if (group.rank() == 3) inputs.topk_ids[0] = 16;
  std::string refusal;
  try {
    layer.forward({tokens, output.data()});
  } catch (const megamoe::Error& error) {
    refusal = error.what();
  }
  inputs.topk_ids[0] = 1;
  layer.forward({tokens, output.data()});
  return "pulled " + std::to_string(report.bytes_pulled) + " bytes; refused once: " + refusal;
}

}  // namespace

int main() {
  const megamoe::LaunchResult result = megamoe::launch_processes(kRanks, run_rank);
  for (int rank = 0; rank < kRanks; ++rank) {
    const megamoe::RankOutcome& outcome = result.ranks[static_cast<std::size_t>(rank)];
    std::printf(
        "rank %d: %s\n", rank, outcome.is_good ? outcome.result.c_str() : outcome.sentence.c_str());
  }
  return result.is_good() ? 0 : 1;
}
