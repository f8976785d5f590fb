#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "megamoe/layer_options.hpp"

namespace megamoe {

/// The end of a bounded wait outside a call: so many milliseconds from now; 0 for no end.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::uint64_t timeout_ms)
      : is_bounded_(timeout_ms != 0),
        end_(Clock::now() + std::chrono::milliseconds(std::min(timeout_ms, kMaxTimeoutMs))) {}

  bool is_bounded() const { return is_bounded_; }
  Clock::time_point end() const { return end_; }
  bool passed() const { return is_bounded_ && Clock::now() >= end_; }

  /// What poll(2) takes: rounded up, -1 for no end.
  int poll_ms() const {
    if (!is_bounded_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    constexpr std::int64_t kLongest = 1'000'000'000;
    return static_cast<int>(left < 0 ? 0 : left < kLongest ? left : kLongest);
  }

  /// The earlier of this end and one so many milliseconds from now.
  Deadline at_most(std::uint64_t timeout_ms) const {
    const Deadline other(timeout_ms);
    return !is_bounded_ || other.end_ < end_ ? other : *this;
  }

 private:
  bool is_bounded_;
  Clock::time_point end_;
};

}  // namespace megamoe
