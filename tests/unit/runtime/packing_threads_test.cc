#include "runtime/gpu/packing_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace megamoe {
namespace {

TEST(PackInParts, EveryPieceIsPackedOnce) {
  for (const int first : {0, 5})
    for (const int count : {0, 1, 2, 3, 31, 1000}) {
      SCOPED_TRACE(testing::Message() << first << " + " << count);
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(first + count + 1));
      pack_in_parts({.first = first, .count = count}, [&](const gpu::PackedRange& range) {
        for (int piece = range.first; piece < range.end(); ++piece)
          ++times.at(static_cast<std::size_t>(piece));
      });
      for (int piece = 0; piece <= first + count; ++piece)
        EXPECT_EQ(times[static_cast<std::size_t>(piece)],
                  piece >= first && piece < first + count ? 1 : 0)
            << piece;
    }
}

}  // namespace
}  // namespace megamoe
