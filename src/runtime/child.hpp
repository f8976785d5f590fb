#pragma once

#include <sys/types.h>

#include "runtime/group/frame_socket.hpp"
#include "runtime/launch.hpp"

namespace megamoe {

/// One rank's process as its parent sees it.
class Child {
 public:
  Child(int rank, pid_t pid, FrameSocket report)
      : rank_(rank), pid_(pid), report_(std::move(report)) {}

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  /// Becomes readable when the child reports or ends; -1 once it has been awaited.
  int descriptor() const { return report_.descriptor(); }

  /// Takes the report, if one comes, and waits for the process to end; a process that has reported
  /// and then stays for seconds, such as one that was stopped, is ended.
  Ending await();

 private:
  int rank_;
  pid_t pid_;
  FrameSocket report_;
};

/// What the child sends its parent at its end.
void report_ending(FrameSocket& parent, const Ending& ending);

}  // namespace megamoe
