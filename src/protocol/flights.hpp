#pragma once

#include <cstdint>

#include "base/portable.hpp"

namespace megamoe {

/// A row under way, and what it adds to its ring block's counter once it has landed.
struct Flight {
  int place;
  std::uint32_t rows;
};

/// A team's rows under way, oldest first. They queue up in fixed places: an index that a compiler
/// doesn't know would keep its owner, and whatever that refers to, in memory.
template <int kMost>
class Flights {
 public:
  MEGAMOE_PROTOCOL bool is_empty() const { return count_ == 0; }
  MEGAMOE_PROTOCOL bool is_full() const { return count_ == kMost; }

  MEGAMOE_PROTOCOL void take_off(const Flight& flight) {
    MEGAMOE_UNROLL
    for (int i = 0; i < kMost; ++i)
      if (i == count_) flights_[i] = flight;
    ++count_;
  }
  MEGAMOE_PROTOCOL Flight land() {
    const Flight oldest = flights_[0];
    MEGAMOE_UNROLL
    for (int i = 1; i < kMost; ++i)
      flights_[i - 1] = flights_[i];
    --count_;
    return oldest;
  }

 private:
  Flight flights_[kMost] = {};
  int count_ = 0;
};

}  // namespace megamoe
