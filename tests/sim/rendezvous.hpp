#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "sim/scheduler.hpp"

namespace megamoe::sim {

/// Where fibers that act together meet: each brings a value, the last one to come concludes, all
/// leave with what it concluded. All must have come for the same reason.
class Rendezvous {
 public:
  Rendezvous(Scheduler& scheduler, int members)
      : scheduler_(scheduler), values_(static_cast<std::size_t>(members)) {}

  /// `conclude(values)` makes one 64-bit result of all values.
  template <class Conclude>
  std::uint64_t meet(std::string_view reason, int member, std::uint64_t value, Conclude conclude) {
    if (here_ == 0)
      reason_ = reason;
    else if (reason != reason_)
      scheduler_.fail(sentence(
          "member ", member, " is at ", reason, " while others of its team are at ", reason_));
    values_[static_cast<std::size_t>(member)] = value;
    if (++here_ == values_.size()) {
      result_ = conclude(values_);
      here_ = 0;
      ++generation_;
      for (const Scheduler::Id sleeper : sleepers_)
        scheduler_.wake(sleeper);
      sleepers_.clear();
      return result_;
    }
    const std::uint64_t mine = generation_;
    sleepers_.push_back(scheduler_.current());
    while (generation_ == mine)
      scheduler_.sleep();
    return result_;
  }

 private:
  Scheduler& scheduler_;
  std::vector<std::uint64_t> values_;
  std::size_t here_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t result_ = 0;
  std::string_view reason_;
  std::vector<Scheduler::Id> sleepers_;
};

}  // namespace megamoe::sim
