#pragma once

#include <cstddef>
#include <cstdint>

#include "base/math.hpp"
#include "megamoe/problem.hpp"
#include "protocol/workspace.hpp"

// The end of a CTA's shared memory, which depends on the problem: a count for each expert, and the
// places of rows that the dispatch teams have under way.
namespace megamoe::gpu {

// Where a row under way is to go.
struct PullRecord {
  std::byte* row;
  float* weight;
  std::byte* scales;
  std::uint32_t scales_shift;  // bytes in front of the first scale
  std::uint32_t weight_shift;
};

// A row under way: its record, the sixteen bytes around its routing weight, its codes, and its
// scales with up to 15 bytes on either side, since bulk copies want whole sixteens. `depth`: values
// of the row.
inline constexpr int kPulledWeight = sizeof(PullRecord);
inline constexpr int kPulledCodes = kPulledWeight + 16;
constexpr int pulled_scales(int depth) {
  return align_up(kPulledCodes + depth, 16);
}
constexpr int pull_bytes(int depth) {
  return align_up(pulled_scales(depth) + depth / kScaleGroup + 32, 128);
}

struct SharedTail {
  int role_counts;  // offsets
  int pulls;
  int pull_bytes;  // of one row under way
  int end;
};

// What the dispatch teams have under way, all together.
struct RowsUnderWay {
  int count;
  int longest;  // values of the longest one
};

constexpr SharedTail shared_tail(int storage_bytes, int experts, const RowsUnderWay& rows) {
  SharedTail tail{};
  tail.role_counts = align_up(storage_bytes, 128);
  tail.pulls = align_up(tail.role_counts + experts * 4, 128);
  tail.pull_bytes = pull_bytes(rows.longest);
  tail.end = tail.pulls + rows.count * tail.pull_bytes;
  return tail;
}

}  // namespace megamoe::gpu
