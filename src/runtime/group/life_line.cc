#include "runtime/group/life_line.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/system_error.hpp"

namespace megamoe {

LifeLine::LifeLine(bool may_use_pidfd) {
  constexpr int kPidfdOpen = 434;  // the same number on every architecture; glibc 2.36 names it
  if (may_use_pidfd) for_others_ = FileHandle(static_cast<int>(syscall(kPidfdOpen, getpid(), 0)));
  if (for_others_.is_open()) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_system_error("pipe2", errno);
  for_others_ = FileHandle(ends[0]);
  kept_ = FileHandle(ends[1]);
}

bool has_ended(int life_line, int within_ms) {
  pollfd entry{life_line, POLLIN, 0};
  return poll(&entry, 1, within_ms) > 0;
}

}  // namespace megamoe
