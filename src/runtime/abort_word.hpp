#pragma once

#include <atomic>

#include "protocol/counters.hpp"
#include "protocol/fault.hpp"

namespace megamoe {

/// Sets an abort word of host memory from outside a call, unless it is set: the first cause stays.
inline void set_abort(AbortWord* word, const Abort& abort) {
  std::uint32_t none = 0;
  std::atomic_ref(word->value)
      .compare_exchange_strong(
          none, abort.word(), std::memory_order_release, std::memory_order_relaxed);
}

template <class AnyCounter>
typename AnyCounter::Value observe_word(AnyCounter* counter) {
  return std::atomic_ref(counter->value).load(std::memory_order_acquire);
}

}  // namespace megamoe
