#include "protocol/call.hpp"

#include <gtest/gtest.h>

#include <set>

#include "sim/rank_host.hpp"
#include "sim/rank_memory.hpp"
#include "sim/scenario.hpp"

namespace megamoe {
namespace {

using sim::RankHost;
using sim::RankMemory;
using sim::Scenario;

Scenario two_ranks() {
  Scenario scenario;
  scenario.problem.ranks = 2;
  scenario.problem.experts = 6;
  scenario.problem.topk = 3;
  scenario.problem.hidden = 64;
  scenario.problem.capacity = 5;
  scenario.format = sim::tagged_format(64, 1);
  scenario.calls = {std::vector<sim::RankInput>(2)};
  return scenario;
}

TEST(Call, TooManyTokensIsARefusalAndBringsNone) {
  const Scenario scenario = two_ranks();
  const RankMemory memory(scenario.workspace(), 2);
  RankHost host(scenario, memory, 1);
  Call call = host.begin(0);
  std::int32_t tokens = 5;
  call.num_tokens = &tokens;
  EXPECT_EQ(refusal_of(call).kind, RefusalKind::kNone);
  EXPECT_EQ(live_tokens(call), 5);
  tokens = 6;  // read anew at every look: a replayed graph changes it
  EXPECT_EQ(refusal_of(call).kind, RefusalKind::kTooManyTokens);
  EXPECT_EQ(refusal_of(call).rank, 1);
  EXPECT_EQ(refusal_of(call).token, 6);
  EXPECT_EQ(live_tokens(call), 0);
}

TEST(Call, TheHostsRefusalComesFirst) {
  const Scenario scenario = two_ranks();
  const RankMemory memory(scenario.workspace(), 2);
  RankHost host(scenario, memory, 0);
  Call call = host.begin(0);
  std::int32_t tokens = 600;
  call.num_tokens = &tokens;
  call.refusal = {RefusalKind::kExpertId, 0, 2, 1, 77};
  EXPECT_EQ(refusal_of(call).kind, RefusalKind::kExpertId);
  EXPECT_EQ(refusal_of(call).value, 77);
  EXPECT_EQ(live_tokens(call), 0);
}

TEST(Call, AVerdictOfAnyKindRefusesTheCall) {
  const Scenario scenario = two_ranks();
  const RankMemory memory(scenario.workspace(), 2);
  RankHost host(scenario, memory, 0);
  const Call& call = host.begin(0);
  EXPECT_FALSE(call_is_refused(call));
  call.local(call.workspace.verdict)->kind = RefusalKind::kTooManyTokens;
  EXPECT_TRUE(call_is_refused(call));
}

/// Every (rank, token, k) has one row, inside the rank's own combine buffer, touching no other.
TEST(Call, CombineRowsTileTheBuffers) {
  const Scenario scenario = two_ranks();
  const RankMemory memory(scenario.workspace(), 2);
  RankHost host(scenario, memory, 0);
  const Call& call = host.begin(0);
  const Problem& p = scenario.problem;
  std::set<const Bfloat16*> rows;
  for (int rank = 0; rank < 2; ++rank) {
    const Bfloat16* first = call.peers.on(rank, call.workspace.combine).raw();
    for (int token = 0; token < p.capacity; ++token) {
      for (int k = 0; k < p.topk; ++k) {
        const SourceSlot slot{static_cast<std::uint32_t>(rank),
                              static_cast<std::uint32_t>(token * p.topk + k)};
        const Bfloat16* row = combine_row(call, slot).raw();
        EXPECT_EQ(row - first, (k * p.capacity + token) * p.hidden);
        rows.insert(row);
      }
    }
  }
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(2 * p.capacity * p.topk));
}

TEST(Call, TheScheduleTakesItsRowsFromTheSums) {
  const Scenario scenario = two_ranks();
  const RankMemory memory(scenario.workspace(), 2);
  RankHost host(scenario, memory, 1);
  Call call = host.begin(0);
  call.ring = {.blocks = 4, .block_m = 8, .linear1_blocks = 1, .linear2_blocks = 1};
  call.experts_per_wave = 3;
  const std::uint32_t rows[] = {9, 0, 3};
  for (int expert = 0; expert < 3; ++expert)
    call.local(call.workspace.received_sum)[expert].value = CountAndMarks{rows[expert], 2}.word();
  auto schedule = schedule_of(call, 0, 1);
  std::vector<std::pair<int, int>> blocks;  // expert, rows
  for (Block block; schedule.next(block);)
    blocks.emplace_back(block.expert, block.rows);
  EXPECT_EQ(blocks,
            (std::vector<std::pair<int, int>>{{0, 8}, {0, 1}, {2, 3}, {0, 8}, {0, 1}, {2, 3}}));
}

}  // namespace
}  // namespace megamoe
