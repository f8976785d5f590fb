#include "protocol/cleanup.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "sim/end_of_call.hpp"
#include "unit/protocol/routed_bench.hpp"

namespace megamoe {
namespace {

using sim::Bench;
using sim::Scenario;

template <class M>
class CleanupOn : public testing::Test {};
TYPED_TEST_SUITE(CleanupOn, TestTeams);

/// Every byte that a call may count in is set; afterwards those are zero and all others are as
/// before.
TYPED_TEST(CleanupOn, ZeroesWhatACallCountsAndNothingElse) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Scenario scenario = routed_scenario(seed);
    for (sim::RankInput& input : scenario.calls[0])
      input.ring.blocks = static_cast<int>(scenario.pool_rows) / kSmallestBlockM;
    SCOPED_TRACE(scenario.describe());
    Bench<TypeParam> bench(scenario);
    const Call& call = bench.call(0);
    const Workspace& w = call.workspace;
    std::byte* words = call.peers.base[0];
    const auto first = static_cast<std::size_t>(w.refusals.offset);
    std::memset(words + first, 0xEE, static_cast<std::size_t>(w.zeroed_bytes) - first);
    std::memset(call.local(w.arrival),
                0xEE,
                sizeof(RankArrival) * static_cast<std::size_t>(scenario.problem.ranks));
    call.local(w.gate)->value = 77;
    const std::vector<std::byte> before(words, words + call.workspace.bytes);
    EXPECT_NE(sim::left_behind(call), "");

    const auto result = bench.run(
        {.workers = static_cast<int>(1 + seed % 4), .teams = static_cast<int>(1 + seed % 2)},
        seed,
        [](TypeParam& m, const Call& c) { clean_up(m, c); });
    ASSERT_TRUE(result.is_clean()) << result.failure;
    EXPECT_EQ(sim::left_behind(call), "");
    EXPECT_EQ(std::memcmp(words, before.data(), first), 0) << "epochs and other words stay";
    EXPECT_EQ(std::memcmp(
                  words + w.zeroed_bytes, before.data() + w.zeroed_bytes, w.bytes - w.zeroed_bytes),
              0);
  }
}

}  // namespace
}  // namespace megamoe
