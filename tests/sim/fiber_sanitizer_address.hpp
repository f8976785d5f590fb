#pragma once

#include <sanitizer/common_interface_defs.h>

#include <cstddef>

namespace megamoe::sim {

/// AddressSanitizer wants to know the bounds of the stack that the next instruction runs on.
struct FiberSanitizer {
  const void* stack = nullptr;  ///< of the thread's own stack: known once it was left
  std::size_t bytes = 0;
  void* fake_stack = nullptr;

  void created(const std::byte* new_stack, std::size_t new_bytes) {
    stack = new_stack;
    bytes = new_bytes;
    fake_stack = nullptr;
  }
  void destroyed() {}
  void leaving_for(FiberSanitizer& next, bool for_ever) {
    came_from() = this;
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &fake_stack, next.stack, next.bytes);
  }
  void arrived() {
    const void* left_stack = nullptr;
    std::size_t left_bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &left_stack, &left_bytes);
    came_from()->stack = left_stack;
    came_from()->bytes = left_bytes;
  }

 private:
  static FiberSanitizer*& came_from() {
    static thread_local FiberSanitizer* left = nullptr;
    return left;
  }
};

}  // namespace megamoe::sim
