#pragma once

#include <cstdint>

#include "base/math.hpp"
#include "protocol/machine.hpp"

namespace megamoe {

/// One row of an expert: which rank it comes from, and its slot in that rank's list.
struct SourceRow {
  int rank;
  std::uint32_t slot;
};

/// Round-robin min-peeling: while ranks have rows left, with A those ranks and L the least that one
/// of them has left, the next L * |A| rows take one row from each rank of A in turn; then L is
/// subtracted. Spreads an expert's rows over the links evenly, from counts alone, so that every
/// team finds any row's place by itself. Rows must be asked for in rising order.
template <Machine M>
class PullOrder {
 public:
  /// `count_of(rank)`: the rows that a rank has for the expert.
  template <class CountOf>
  MEGAMOE_PROTOCOL PullOrder(M& m, int ranks, CountOf count_of) : ranks_(ranks) {
    MEGAMOE_UNROLL
    for (int s = 0; s < kStripes; ++s) {
      if (s * M::kLanes >= ranks_) break;
      const int rank = s * M::kLanes + m.lane();
      left_[s] = rank < ranks ? static_cast<int>(count_of(rank)) : 0;
    }
    measure(m);
  }

  MEGAMOE_PROTOCOL SourceRow at(M& m, int row) {
    while (row - first_row_ >= layer_ * active_)
      peel(m);
    const int in_layer = row - first_row_;
    return {nth_active(m, in_layer % active_),
            static_cast<std::uint32_t>(depth_ + in_layer / active_)};
  }

 private:
  // Loops over them have constant ends, so that a GPU keeps left_ in registers.
  static constexpr int kStripes = (kMaxRanks + M::kLanes - 1) / M::kLanes;

  MEGAMOE_PROTOCOL void measure(M& m) {
    constexpr int kNone = 0x7FFFFFFF;
    int least = kNone;
    int active = 0;
    MEGAMOE_UNROLL
    for (int s = 0; s < kStripes; ++s) {
      if (s * M::kLanes >= ranks_) break;
      if (left_[s] == 0) continue;
      least = left_[s] < least ? left_[s] : least;
      ++active;
    }
    layer_ = m.reduce_min(least);
    active_ = m.reduce_add(active);
  }

  MEGAMOE_PROTOCOL void peel(M& m) {
    first_row_ += layer_ * active_;
    depth_ += layer_;
    MEGAMOE_UNROLL
    for (int s = 0; s < kStripes; ++s) {
      if (s * M::kLanes >= ranks_) break;
      if (left_[s] > 0) left_[s] -= layer_;
    }
    measure(m);
  }

  MEGAMOE_PROTOCOL int nth_active(M& m, int n) const {
    MEGAMOE_UNROLL
    for (int s = 0; s < kStripes; ++s) {
      if (s * M::kLanes >= ranks_) break;
      std::uint32_t mask = m.ballot(left_[s] > 0);
      for (int lane = 0; mask != 0; ++lane, mask >>= 1) {
        if ((mask & 1U) != 0 && n-- == 0) return s * M::kLanes + lane;
      }
    }
    return 0;  // not reached: n < active_
  }

  int ranks_;
  int left_[kStripes] = {};
  int layer_ = 0;      // L
  int active_ = 0;     // |A|
  int depth_ = 0;      // rows that each active rank has given so far
  int first_row_ = 0;  // the layer's first row
};

}  // namespace megamoe
