#pragma once

#include <sanitizer/tsan_interface.h>

#include <cstddef>

namespace megamoe::sim {

/// ThreadSanitizer keeps a call stack for each fiber. Switches order the fibers, so it finds no
/// race here: tests/model looks for those, on threads.
struct FiberSanitizer {
  void* fiber = nullptr;

  void created(const std::byte* /*stack*/, std::size_t /*bytes*/) {
    fiber = __tsan_create_fiber(0);
  }
  void destroyed() {
    if (fiber != nullptr) __tsan_destroy_fiber(fiber);
    fiber = nullptr;
  }
  void leaving_for(FiberSanitizer& next, bool /*for_ever*/) {
    if (fiber == nullptr) fiber = __tsan_get_current_fiber();  // the thread's own
    __tsan_switch_to_fiber(next.fiber, 0);
  }
  void arrived() {}
};

}  // namespace megamoe::sim
