#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace megamoe::cli {

/// One line on standard error that says how far long work is: done, of how many, rate, time left.
/// Silent where standard error is not a terminal, and for work that is over at once.
class Progress {
 public:
  /// `unit` is what is counted, such as "experts packed"; `is_shown` false keeps it silent.
  Progress(std::string unit, std::uint64_t total, bool is_shown = true);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance_to(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string unit_;
  std::uint64_t total_;
  bool is_shown_;
  bool has_printed_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace megamoe::cli
