#include "protocol/blocks.hpp"

#include <gtest/gtest.h>

#include "unit/protocol/routed_bench.hpp"

namespace megamoe {
namespace {

using sim::Bench;
using sim::Scenario;

constexpr Ring kRing{.blocks = 3, .block_m = 8, .linear1_blocks = 4, .linear2_blocks = 2};

Scenario one_rank() {
  Scenario scenario;
  scenario.format = sim::tagged_format(32, 4);
  scenario.calls = {std::vector<sim::RankInput>(1)};
  scenario.calls[0][0].ring = kRing;
  return scenario;
}

template <class M>
class BlocksOn : public testing::Test {};
TYPED_TEST_SUITE(BlocksOn, TestTeams);

struct Gate1 {
  Phase phase;
  WaitFor what;
  std::uint64_t expected;
};

/// Pool block 7 lies in place 1, lap 2. One short, the wait expires and says so; reached, it
/// passes.
TYPED_TEST(BlocksOn, InputIsAwaitedByLap) {
  const Scenario scenario = one_rank();
  for (const Gate1& gate : {Gate1{Phase::kLinear1, WaitFor::kRows, 24},
                            Gate1{Phase::kLinear2, WaitFor::kLinear1, 12}}) {
    for (const bool is_there : {false, true}) {
      Bench<TypeParam> bench(scenario);
      const Workspace& w = bench.call(0).workspace;
      std::uint32_t& word = gate.phase == Phase::kLinear1 ? bench.call(0).local(w.arrived)[1].value
                                                          : bench.call(0).local(w.ready)[1].value;
      word = static_cast<std::uint32_t>(gate.expected) - (is_there ? 0 : 1);
      const auto result =
          bench.run({.role = sim::Role::kCompute}, 1, [&](TypeParam& m, const Call& call) {
            const Block block{.phase = gate.phase, .pool = {7}};
            EXPECT_EQ(wait_for_input(m, call, block), is_there);
          });
      EXPECT_EQ(result.ending, sim::Scheduler::Ending::kDone);
      EXPECT_EQ(result.departures.empty(), is_there);
      if (is_there) continue;
      EXPECT_EQ(result.departures[0].wait.what, gate.what);
      EXPECT_EQ(result.departures[0].wait.subject, 7);
      EXPECT_EQ(result.departures[0].observation.seen, gate.expected - 1);
      EXPECT_EQ(result.departures[0].observation.expected, gate.expected);
    }
  }
}

TYPED_TEST(BlocksOn, OutputIsSignalledOnceATeam) {
  const Scenario scenario = one_rank();
  Bench<TypeParam> bench(scenario);
  const Workspace& w = bench.call(0).workspace;
  const auto result =
      bench.run({.role = sim::Role::kCompute}, 1, [&](TypeParam& m, const Call& call) {
        signal_output(m, call, {.phase = Phase::kLinear1, .pool = {5}});
        signal_output(m, call, {.phase = Phase::kLinear2, .pool = {4}});
        signal_output(m, call, {.phase = Phase::kLinear2, .pool = {4}});
      });
  EXPECT_TRUE(result.is_clean()) << result.failure;
  for (int place = 0; place < 3; ++place) {
    EXPECT_EQ(bench.call(0).local(w.ready)[place].value, place == 2 ? 1U : 0U);
    EXPECT_EQ(bench.call(0).local(w.finished)[place].value, place == 1 ? 2U : 0U);
    EXPECT_EQ(bench.call(0).local(w.arrived)[place].value, 0U);
  }
  EXPECT_EQ(bench.call(0).local(w.progress)->value, 3U);
}

/// A row goes to its token and k on its source rank, from a channel on.
TYPED_TEST(BlocksOn, ARowIsPushedToItsSource) {
  Scenario scenario;
  scenario.problem.ranks = 3;
  scenario.problem.experts = 3;
  scenario.problem.topk = 2;
  scenario.problem.capacity = 4;
  scenario.problem.hidden = 64;
  scenario.format = sim::tagged_format(64, 1);
  scenario.calls = {std::vector<sim::RankInput>(3)};
  Bench<TypeParam> bench(scenario);
  const Call& call = bench.call(1);
  call.local(call.workspace.row_source)[5] = {2, 7};  // token 3, k 1 of rank 2
  const auto result =
      bench.run({.ranks = {1}, .role = sim::Role::kCompute}, 1, [&](TypeParam& m, const Call& c) {
        Bfloat16 values[16];
        for (int i = 0; i < 16; ++i)
          values[i] = {static_cast<std::uint16_t>(100 + i)};
        push_row(m, c, 5, 32, values, 16);
      });
  EXPECT_TRUE(result.is_clean()) << result.failure;
  const Bfloat16* combine = bench.call(2).local(bench.call(2).workspace.combine);
  for (int i = 0; i < 2 * 4 * 64; ++i) {
    const int channel = i - (1 * 4 + 3) * 64 - 32;
    const int expected = channel >= 0 && channel < 16 ? 100 + channel : 0xA5A5;
    EXPECT_EQ(combine[i].bits, expected) << i;
  }
}

}  // namespace
}  // namespace megamoe
