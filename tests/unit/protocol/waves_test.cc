#include "protocol/waves.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "rows_of.hpp"

namespace megamoe {
namespace {

using test::RowsOf;

struct Load {
  std::vector<int> rows;
  Ring ring;
  int experts_per_wave = 1;

  Waves<RowsOf> waves() const {
    return {{.ring = ring,
             .experts = static_cast<int>(rows.size()),
             .experts_per_wave = experts_per_wave},
            RowsOf{&rows}};
  }
};

Load random_load(std::mt19937& random) {
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  Load load;
  load.ring.block_m = 1 << below(4);
  load.ring.blocks = 1 + below(8);
  load.rows.resize(static_cast<std::size_t>(1 + below(10)));
  for (int& rows : load.rows)
    rows = below(3) == 0 ? 0 : below(load.ring.block_m * 12);
  load.experts_per_wave = 1 + below(static_cast<int>(load.rows.size()));
  return load;
}

/// A block of the pool.
struct Place {
  int expert, m, rows;
};

/// Every block of the pool, cut into waves the obvious way.
std::vector<std::vector<Place>> expected_waves(const Load& load) {
  std::vector<std::vector<Place>> waves;
  int experts = 0;
  int last_expert = -1;
  for (int expert = 0; expert < static_cast<int>(load.rows.size()); ++expert) {
    const int rows = load.rows[static_cast<std::size_t>(expert)];
    for (int m = 0; m * load.ring.block_m < rows; ++m) {
      const bool is_another = expert != last_expert;
      const bool is_full = waves.empty() ||
                           static_cast<int>(waves.back().size()) == load.ring.blocks ||
                           (is_another && experts == load.experts_per_wave);
      if (is_full) {
        waves.emplace_back();
        experts = 0;
      }
      experts += is_another || is_full ? 1 : 0;
      last_expert = expert;
      waves.back().push_back(
          {expert, m, std::min(load.ring.block_m, rows - m * load.ring.block_m)});
    }
  }
  return waves;
}

/// What for_each_expert says of a wave, against the wave's blocks.
void expect_experts(const Load& load,
                    Waves<RowsOf>& waves,
                    const std::vector<Place>& blocks,
                    int first_block) {
  std::size_t next = 0;
  int last_expert = -1;
  const bool is_done = waves.for_each_expert([&](const WaveRows& rows) {
    EXPECT_TRUE(last_expert < 0 || rows.expert == last_expert + 1) << "experts are not left out";
    last_expert = rows.expert;
    const int of_expert = load.rows[static_cast<std::size_t>(rows.expert)];
    EXPECT_EQ(rows.is_rest, rows.before + rows.count == of_expert);
    EXPECT_EQ(rows.first_block.index, first_block + static_cast<int>(next));
    if (rows.count > 0) {
      EXPECT_EQ(rows.before, blocks.at(next).m * load.ring.block_m);
    }
    int count = 0;
    for (; next < blocks.size() && blocks[next].expert == rows.expert; ++next) {
      for (int i = 0; i < blocks[next].rows; ++i, ++count) {
        EXPECT_EQ(rows.block(count, load.ring.block_m).index, first_block + static_cast<int>(next));
        EXPECT_EQ(rows.is_last(count), rows.before + count == of_expert - 1);
      }
    }
    EXPECT_EQ(rows.count, count);
    return true;
  });
  EXPECT_TRUE(is_done);
  EXPECT_EQ(next, blocks.size()) << "a block of the wave belongs to none of its experts";
}

TEST(Waves, AreTheObviousOnes) {
  std::mt19937 random(1);
  int cut_experts = 0;
  for (int round = 0; round < 4000 && !HasFailure(); ++round) {
    const Load load = random_load(random);
    SCOPED_TRACE(testing::Message() << "round " << round << " of seed 1");
    Waves<RowsOf> waves = load.waves();
    int first_block = 0;
    for (const auto& blocks : expected_waves(load)) {
      ASSERT_FALSE(waves.is_over());
      ASSERT_EQ(waves.first_block().index, first_block);
      ASSERT_EQ(waves.blocks(), static_cast<int>(blocks.size()));
      EXPECT_EQ(waves.begin().m == 0, blocks.front().m == 0);
      cut_experts += waves.end().m > 0 ? 1 : 0;
      expect_experts(load, waves, blocks, first_block);
      first_block += waves.blocks();
      waves.advance();
    }
    EXPECT_TRUE(waves.is_over());
  }
  EXPECT_GT(cut_experts, 1000) << "too few waves end inside an expert to prove anything";
}

TEST(Waves, AnExpertLargerThanTheRingTakesSeveral) {
  const Load load{
      .rows = {3, 0, 45, 9}, .ring = {.blocks = 2, .block_m = 8}, .experts_per_wave = 4};
  struct Part {
    int expert, before, count;
    bool is_rest;
    bool operator==(const Part&) const = default;
  };
  std::vector<std::vector<Part>> got;
  for (auto waves = load.waves(); !waves.is_over(); waves.advance()) {
    got.emplace_back();
    waves.for_each_expert([&](const WaveRows& rows) {
      got.back().push_back({rows.expert, rows.before, rows.count, rows.is_rest});
      return true;
    });
  }
  const std::vector<std::vector<Part>> expected = {
      {{0, 0, 3, true}, {1, 0, 0, true}, {2, 0, 8, false}},
      {{2, 8, 16, false}},
      {{2, 24, 16, false}},
      {{2, 40, 5, true}, {3, 0, 8, false}},
      {{3, 8, 1, true}},
  };
  EXPECT_EQ(got, expected);
}

TEST(Waves, WithoutRowsThereAreNone) {
  const Load load{.rows = {0, 0, 0}, .ring = {}, .experts_per_wave = 2};
  EXPECT_TRUE(load.waves().is_over());
}

TEST(Waves, AVisitorEndsTheWalk) {
  const Load load{.rows = {3, 3, 3}, .ring = {.blocks = 8, .block_m = 8}, .experts_per_wave = 3};
  Waves<RowsOf> waves = load.waves();
  int visits = 0;
  EXPECT_FALSE(waves.for_each_expert([&](const WaveRows&) { return ++visits < 2; }));
  EXPECT_EQ(visits, 2);
}

/// Works in a constant expression, as on a device.
TEST(Waves, AreArithmetic) {
  struct Nine {
    constexpr int operator()(int) const { return 9; }
  };
  constexpr int kWaves = [] {
    int count = 0;
    Waves<Nine> waves({.ring = {.blocks = 3, .block_m = 4}, .experts = 4, .experts_per_wave = 2},
                      Nine{});
    for (; !waves.is_over(); waves.advance())
      ++count;
    return count;
  }();
  EXPECT_EQ(kWaves, 4);
}

}  // namespace
}  // namespace megamoe
