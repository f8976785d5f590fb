#include "protocol/pull_order.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sim/bench.hpp"

namespace megamoe {
namespace {

using sim::Bench;
using sim::Random;
using sim::Scenario;
using sim::Team;

struct Row {
  int rank;
  std::uint32_t slot;
  bool operator==(const Row&) const = default;
};

/// Rounds of one row from each rank that has any left.
std::vector<Row> round_robin(const std::vector<int>& counts) {
  std::vector<Row> order;
  for (int round = 0;; ++round) {
    const std::size_t before = order.size();
    for (std::size_t rank = 0; rank < counts.size(); ++rank)
      if (round < counts[rank])
        order.push_back({static_cast<int>(rank), static_cast<std::uint32_t>(round)});
    if (order.size() == before) return order;
  }
}

std::vector<int> random_counts(Random& random) {
  std::vector<int> counts(static_cast<std::size_t>(random.between(1, kMaxRanks)));
  const int most = random.pick({1, 3, 40});
  for (int& count : counts)
    count = random.one_in(3) ? 0 : random.between(0, most);
  return counts;
}

template <class M>
class PullOrderOn : public testing::Test {};
using Widths = testing::Types<Team<1, 1>, Team<3, 1>, Team<32, 1>>;
TYPED_TEST_SUITE(PullOrderOn, Widths);

/// Teams ask for every stride-th row, from 0 or later; each lane gets the same answer.
TYPED_TEST(PullOrderOn, IsRoundRobinForEveryStrideAndLane) {
  Scenario scenario;
  scenario.format = sim::tagged_format(32, 1);
  scenario.calls = {std::vector<sim::RankInput>(1)};
  Bench<TypeParam> bench(scenario);
  Random random(5);
  for (int round = 0; round < (TypeParam::kLanes == 32 ? 25 : 150) && !this->HasFailure();
       ++round) {
    const std::vector<int> counts = random_counts(random);
    const std::vector<Row> expected = round_robin(counts);
    const int stride = random.between(1, 9);
    const int teams = random.between(1, 3);
    const auto result = bench.run({.teams = teams}, random.next(), [&](TypeParam& m, const Call&) {
      const auto count_of = [&](int rank) {
        return static_cast<std::uint32_t>(counts[static_cast<std::size_t>(rank)]);
      };
      PullOrder<TypeParam> order(m, static_cast<int>(counts.size()), count_of);
      for (std::size_t row = static_cast<std::size_t>(m.team()); row < expected.size();
           row += static_cast<std::size_t>(stride)) {
        const SourceRow got = order.at(m, static_cast<int>(row));
        EXPECT_EQ((Row{got.rank, got.slot}), expected[row])
            << "row " << row << ", lane " << m.lane();
      }
    });
    EXPECT_TRUE(result.is_clean()) << result.failure;
  }
}

/// Counts as large as they get: nothing is walked row by row.
TYPED_TEST(PullOrderOn, TakesMillionsOfRowsInAStep) {
  Scenario scenario;
  scenario.format = sim::tagged_format(32, 1);
  scenario.calls = {std::vector<sim::RankInput>(1)};
  Bench<TypeParam> bench(scenario);
  constexpr std::uint32_t kRows = 65'536U * 32;
  const auto result = bench.run({}, 1, [&](TypeParam& m, const Call&) {
    PullOrder<TypeParam> order(
        m, kMaxRanks, [](int rank) { return rank == 71 ? kRows : kRows - 1; });
    const std::int64_t total = std::int64_t{kRows} * kMaxRanks - 71;
    const SourceRow middle = order.at(m, 72 * 1'000'000 + 5);
    EXPECT_EQ(middle.rank, 5);
    EXPECT_EQ(middle.slot, 1'000'000U);
    const SourceRow last = order.at(m, static_cast<int>(total - 1));
    EXPECT_EQ(last.rank, 71);
    EXPECT_EQ(last.slot, kRows - 1);
  });
  EXPECT_TRUE(result.is_clean()) << result.failure;
}

}  // namespace
}  // namespace megamoe
