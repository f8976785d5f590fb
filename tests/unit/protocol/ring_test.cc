#include "protocol/ring.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace megamoe {
namespace {

void expect_what_counting_up_gives(int settled_rows) {
  for (const int blocks : {1, 2, 3, 24, 48}) {
    const Ring ring{.blocks = blocks,
                    .block_m = 16,
                    .linear1_blocks = 5,
                    .linear2_blocks = 3,
                    .settled_rows = settled_rows};
    std::vector<std::uint32_t> arrived(static_cast<std::size_t>(blocks));
    std::vector<std::uint32_t> ready = arrived;
    std::vector<std::uint32_t> finished = arrived;
    int place = 0;
    int lap = 0;
    for (int block = 0; block < 500; ++block) {
      EXPECT_EQ(ring.place({block}), place);
      EXPECT_EQ(ring.lap({block}), lap);
      EXPECT_EQ(ring.row({block}, 7), place * 16 + 7);
      const auto at = static_cast<std::size_t>(place);
      EXPECT_EQ(ring.finished_before({block}), finished[at]);
      EXPECT_EQ(ring.arrived_when_full({block}), arrived[at] += 16);
      EXPECT_EQ(ring.ready_to_settle({block}), ready[at] += 5);
      EXPECT_EQ(ring.ready_when_done({block}),
                ready[at] += static_cast<std::uint32_t>(settled_rows));
      finished[at] += 3;
      if (++place == blocks) {
        place = 0;
        ++lap;
      }
    }
  }
}

/// Pool blocks in order, each written down where it lies, its counters counted up by hand.
TEST(Ring, ExpectsWhatCountingUpGives) {
  expect_what_counting_up_gives(0);
  expect_what_counting_up_gives(16);
}

/// 72 ranks send 65,536 * 32 rows each to one expert: in blocks of 8 through the least ring.
TEST(Ring, TheLargestCallFits32Bits) {
  constexpr std::int64_t kRows = std::int64_t{72} * 65'536 * 32;
  constexpr Ring kRing{.blocks = 48,
                       .block_m = 8,
                       .linear1_blocks = 1024,
                       .linear2_blocks = 1024,
                       .settled_rows = 8};
  constexpr PoolBlock kLast{static_cast<int>(kRows / 8) - 1};
  constexpr std::int64_t kLaps = kRows / 8 / 48;
  static_assert(kRing.lap(kLast) + 1 == kLaps);
  EXPECT_EQ(kRing.arrived_when_full(kLast), static_cast<std::uint32_t>(8 * kLaps));
  EXPECT_EQ(kRing.ready_when_done(kLast), static_cast<std::uint32_t>(1032 * kLaps));
  EXPECT_LE(1032 * kLaps, std::int64_t{0xFFFFFFFF});
  EXPECT_EQ(kRing.row(kLast, 7), 383);
}

}  // namespace
}  // namespace megamoe
