#include "protocol/schedule.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "rows_of.hpp"

namespace megamoe {
namespace {

using test::RowsOf;

struct Load {
  std::vector<int> rows;
  Ring ring;
  int experts_per_wave = 1;
  int workers = 1;
};

Load random_load(std::mt19937& random) {
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  constexpr int kBlockM[] = {8, 16, 32, 64, 96, 128, 192};
  Load load;
  load.ring.block_m = kBlockM[below(7)];
  load.ring.blocks = 384 / load.ring.block_m * (1 + below(3));
  if (below(4) == 0) load.ring.blocks = 1 + below(4);
  load.ring.linear1_blocks = 1 + below(6);
  load.ring.linear2_blocks = 1 + below(6);
  load.rows.resize(static_cast<std::size_t>(1 + below(12)));
  const int most = load.ring.block_m * (1 + below(12));
  for (int& rows : load.rows)
    rows = below(3) == 0 ? 0 : below(most);
  load.experts_per_wave = 1 + below(static_cast<int>(load.rows.size()));
  load.workers = below(5) == 0 ? 200 + below(200) : 1 + below(9);
  return load;
}

/// Every block of every worker, in the order of the whole sequence: worker w has numbers w, w + W,
/// ...
std::vector<Block> whole_sequence(const Load& load) {
  std::vector<std::vector<Block>> of_worker;
  for (int worker = 0; worker < load.workers; ++worker) {
    of_worker.emplace_back();
    Schedule<RowsOf> schedule({.ring = load.ring,
                               .experts = static_cast<int>(load.rows.size()),
                               .experts_per_wave = load.experts_per_wave,
                               .worker = worker,
                               .num_workers = load.workers},
                              RowsOf{&load.rows});
    for (Block block; schedule.next(block);)
      of_worker.back().push_back(block);
    Block block;
    EXPECT_FALSE(schedule.next(block)) << "the end stays the end";
  }
  std::vector<Block> all;
  for (std::size_t number = 0;; ++number) {
    const std::size_t worker = number % of_worker.size();
    const std::size_t turn = number / of_worker.size();
    if (turn >= of_worker[worker].size()) break;
    all.push_back(of_worker[worker][turn]);
  }
  std::size_t blocks = 0;
  for (const auto& list : of_worker)
    blocks += list.size();
  EXPECT_EQ(all.size(), blocks) << "workers' shares differ by more than one";
  return all;
}

/// The obvious way: waves of pool blocks, one by one.
std::vector<Block> expected_sequence(const Load& load) {
  std::vector<Block> pool;  // every pool block, as a linear 1 block with n = 0
  for (int expert = 0; expert < static_cast<int>(load.rows.size()); ++expert)
    for (int first = 0; first < RowsOf{&load.rows}(expert); first += load.ring.block_m)
      pool.push_back({.phase = Phase::kLinear1,
                      .expert = expert,
                      .m = first / load.ring.block_m,
                      .n = 0,
                      .rows = std::min(load.ring.block_m, RowsOf{&load.rows}(expert)-first),
                      .pool = {static_cast<int>(pool.size())}});
  std::vector<Block> all;
  std::size_t next = 0;
  while (next < pool.size()) {
    std::vector<Block> wave;
    int experts = 0;
    int last_expert = -1;
    while (next < pool.size() && static_cast<int>(wave.size()) < load.ring.blocks) {
      if (pool[next].expert != last_expert && experts == load.experts_per_wave) break;
      experts += pool[next].expert != last_expert ? 1 : 0;
      last_expert = pool[next].expert;
      wave.push_back(pool[next++]);
    }
    for (const Phase phase : {Phase::kLinear1, Phase::kLinear2}) {
      for (Block block : wave) {
        block.phase = phase;
        const int blocks_n =
            phase == Phase::kLinear1 ? load.ring.linear1_blocks : load.ring.linear2_blocks;
        for (block.n = 0; block.n < blocks_n; ++block.n)
          all.push_back(block);
      }
    }
  }
  return all;
}

auto fields(const Block& b) {
  return std::make_tuple(static_cast<int>(b.phase), b.expert, b.m, b.n, b.rows, b.pool.index);
}

TEST(Schedule, AllWorkersTogetherWalkTheObviousSequence) {
  std::mt19937 random(1);
  for (int round = 0; round < 4000 && !HasFailure(); ++round) {
    const Load load = random_load(random);
    SCOPED_TRACE(testing::Message() << "round " << round << " of seed 1");
    const std::vector<Block> got = whole_sequence(load);
    const std::vector<Block> expected = expected_sequence(load);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(fields(got[i]), fields(expected[i])) << "block " << i;
  }
}

/// What keeps waits from closing a circle, checked on the walk itself rather than on a second
/// writing of it.
TEST(Schedule, EveryEarlierLapBelongsToAnEarlierWave) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000 && !HasFailure(); ++round) {
    const Load load = random_load(random);
    SCOPED_TRACE(testing::Message() << "round " << round << " of seed 2");
    std::map<int, int> wave_of;               // pool block -> wave
    std::map<std::pair<int, int>, int> seen;  // (phase, pool block) -> how often
    int wave = 0;
    Phase last = Phase::kLinear1;
    for (const Block& block : whole_sequence(load)) {
      if (block.phase == Phase::kLinear1 && last == Phase::kLinear2) ++wave;
      last = block.phase;
      ++seen[{static_cast<int>(block.phase), block.pool.index}];
      if (block.phase == Phase::kLinear2) {
        EXPECT_EQ(wave_of.at(block.pool.index), wave) << "linear 2 in another wave than linear 1";
        EXPECT_EQ(seen.at({0, block.pool.index}), load.ring.linear1_blocks)
            << "linear 2 before linear 1";
        continue;
      }
      wave_of[block.pool.index] = wave;
      const auto before = wave_of.find(block.pool.index - load.ring.blocks);
      EXPECT_TRUE(before == wave_of.end() || before->second < wave);
    }
    std::map<int, int> blocks_of_wave;
    for (const auto& [block, its_wave] : wave_of)
      EXPECT_LE(++blocks_of_wave[its_wave], load.ring.blocks);
  }
}

std::vector<Block> blocks_of_worker(const Load& load, int worker) {
  std::vector<Block> blocks;
  Schedule<RowsOf> schedule({.ring = load.ring,
                             .experts = static_cast<int>(load.rows.size()),
                             .experts_per_wave = load.experts_per_wave,
                             .worker = worker,
                             .num_workers = load.workers},
                            RowsOf{&load.rows});
  for (Block block; schedule.next(block);)
    blocks.push_back(block);
  return blocks;
}

/// With a lead, too, every block is dealt once, and each worker gets its own in the order of the
/// whole sequence.
TEST(Schedule, ALeadLeavesNoBlockOutAndKeepsTheOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000 && !HasFailure(); ++round) {
    Load load = random_load(random);
    load.ring.linear2_lead = static_cast<int>(random() % 5);
    SCOPED_TRACE(testing::Message() << "round " << round << " of seed 3");
    std::map<decltype(fields(Block{})), std::size_t> place;
    const std::vector<Block> expected = expected_sequence(load);
    for (std::size_t i = 0; i < expected.size(); ++i)
      place[fields(expected[i])] = i;
    std::vector<int> dealt(expected.size());
    for (int worker = 0; worker < load.workers; ++worker) {
      std::size_t next = 0;
      for (const Block& block : blocks_of_worker(load, worker)) {
        const auto at = place.find(fields(block));
        ASSERT_NE(at, place.end());
        ASSERT_GE(at->second, next);
        next = at->second + 1;
        ++dealt[at->second];
      }
    }
    for (const int times : dealt)
      ASSERT_EQ(times, 1);
  }
}

/// In a call of one wave with enough of linear 2, no worker is more than one of its blocks behind.
TEST(Schedule, ALeadMakesSharesEqual) {
  std::mt19937 random(4);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    Load load;
    load.workers = 2 + static_cast<int>(random() % 140);
    load.ring = {.blocks = 4096,
                 .block_m = 8,
                 .linear1_blocks = 1 + static_cast<int>(random() % 16),
                 .linear2_blocks = 40,
                 .linear2_lead = static_cast<int>(random() % 5)};
    load.rows.assign(20 + random() % 20, 8);
    load.experts_per_wave = 100;
    const auto blocks = static_cast<int>(load.rows.size());
    const bool has_lead = load.ring.linear1_blocks * blocks >= load.workers;
    if (!has_lead || load.ring.linear2_lead * load.workers > 40 * blocks) continue;
    SCOPED_TRACE(testing::Message() << "round " << round << " of seed 4");
    int least = 1 << 30;
    int most = 0;
    for (int worker = 0; worker < load.workers; ++worker) {
      int cost = 0;
      for (const Block& block : blocks_of_worker(load, worker))
        cost += block.phase == Phase::kLinear1 ? load.ring.linear2_lead : 1;
      least = std::min(least, cost);
      most = std::max(most, cost);
    }
    EXPECT_LE(most - least, 1);
  }
}

TEST(Schedule, WithoutRowsThereAreNoBlocks) {
  const Load load{.rows = {0, 0, 0}, .ring = {}, .experts_per_wave = 2, .workers = 3};
  EXPECT_TRUE(whole_sequence(load).empty());
}

/// Works in a constant expression, as on a device.
TEST(Schedule, IsArithmetic) {
  struct Seven {
    constexpr int operator()(int) const { return 7; }
  };
  constexpr int kBlocks = [] {
    Schedule<Seven> schedule({.ring = {.blocks = 2, .block_m = 4}, .experts = 3}, Seven{});
    int count = 0;
    for (Block block; schedule.next(block);)
      ++count;
    return count;
  }();
  EXPECT_EQ(kBlocks, 12);
}

}  // namespace
}  // namespace megamoe
