#pragma once

#include <poll.h>

#include <cerrno>
#include <span>

#include "runtime/system_error.hpp"

namespace megamoe {

/// poll(2): how many entries are ready, 0 when the time is over, -1 when a signal came first (the
/// caller looks at its deadline and asks again). Throws for whatever would fail again at once.
inline int poll_events(std::span<pollfd> entries, int milliseconds) {
  const int num_ready = poll(entries.data(), entries.size(), milliseconds);
  if (num_ready < 0 && errno != EINTR) throw_system_error("waiting for sockets", errno);
  return num_ready;
}

}  // namespace megamoe
