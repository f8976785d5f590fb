#pragma once

#include "runtime/file_handle.hpp"

namespace megamoe {

/// What tells others that this process has ended: a descriptor to send them, that becomes readable
/// then (whether or not the parent has reaped it). A pidfd of this process, so that neither pid
/// namespaces nor reused pids mislead; where the kernel has none, the reading end of a pipe whose
/// other end this process never writes.
class LifeLine {
 public:
  /// Without pidfds (tests) it is what it would be on an older kernel.
  explicit LifeLine(bool may_use_pidfd = true);
  int for_others() const { return for_others_.get(); }
  const char* kind() const { return kept_.is_open() ? "a pipe" : "a pidfd"; }

 private:
  FileHandle for_others_;
  FileHandle kept_;  // the pipe's writing end
};

/// Whether the process behind a life line has ended, or ends within so many milliseconds.
bool has_ended(int life_line, int within_ms);

}  // namespace megamoe
