#pragma once

#if defined(__SANITIZE_THREAD__)
#  include "sim/fiber_sanitizer_thread.hpp"
#elif defined(__SANITIZE_ADDRESS__)
#  include "sim/fiber_sanitizer_address.hpp"
#elif defined(__has_feature)
#  if __has_feature(thread_sanitizer)
#    include "sim/fiber_sanitizer_thread.hpp"
#  elif __has_feature(address_sanitizer)
#    include "sim/fiber_sanitizer_address.hpp"
#  else
#    include "sim/fiber_sanitizer_none.hpp"
#  endif
#else
#  include "sim/fiber_sanitizer_none.hpp"
#endif

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace megamoe::sim {

/// Memory for one fiber's calls, with a page below it that nobody may touch.
class Stack {
 public:
  Stack();
  ~Stack();
  Stack(Stack&& other) noexcept;
  Stack& operator=(Stack&&) = delete;

  std::byte* begin() const;
  static std::size_t size();

 private:
  std::byte* mapping_;
};

/// A place to come back to: the thread's own stack, or a fiber's.
struct Place {
  ucontext_t registers{};
  FiberSanitizer sanitizer;
};

/// Leaves `from`, goes on at `to`; returns when somebody goes on at `from`.
void switch_places(Place& from, Place& to);

/// A function on a stack of its own. The body must end by leaving for another place for ever.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  Place& place() { return place_; }
  /// The last thing that the body does.
  [[noreturn]] void leave_for_ever(Place& next);

 private:
  static void enter(unsigned high, unsigned low);

  Stack stack_;
  Place place_;
  std::function<void()> body_;
};

}  // namespace megamoe::sim
