#include "runtime/child.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/check.hpp"
#include "runtime/group/text_list.hpp"

namespace megamoe {
namespace {

constexpr const char* kGood = "good";

/// What a process may still take to end once it has reported; it only has to leave.
constexpr std::uint64_t kLeavingMs = 5'000;

Ending told(const Frame& frame) {
  const auto parts = split_texts(frame.body);
  if (parts.size() != 2) return {.text = "its report is malformed"};
  if (parts[0] == kGood) return {.is_good = true, .text = parts[1]};
  return {.text = parts[1], .code = static_cast<ErrorCode>(std::stoi(parts[0]))};
}

Ending seen(int rank, pid_t pid, int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return {.text = sentence("rank ",
                             rank,
                             " (process ",
                             pid,
                             ") was killed by signal ",
                             signal,
                             " (",
                             strsignal(signal),
                             ")"),
            .code = ErrorCode::kRunFailed,
            .signal = signal};
  }
  return {.text = sentence("rank ",
                           rank,
                           " (process ",
                           pid,
                           ") ended with exit code ",
                           WEXITSTATUS(status),
                           " and said nothing"),
          .code = ErrorCode::kRunFailed};
}

}  // namespace

/// The report is waited for without an end: the child may compute for hours. Its death closes the
/// socket.
Ending Child::await() {
  Frame frame;
  const bool has_told = report_.receive(frame, Deadline(0)) == Transfer::kDone;
  Frame nothing;
  const bool is_stuck =
      has_told && report_.receive(nothing, Deadline(kLeavingMs)) == Transfer::kExpired;
  if (is_stuck) kill(pid_, SIGKILL);
  report_.close();
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_stuck) return told(frame);
  if (WIFSIGNALED(status) || !has_told) return seen(rank_, pid_, status);
  return told(frame);
}

void report_ending(FrameSocket& parent, const Ending& ending) {
  const std::string head = ending.is_good ? kGood : std::to_string(static_cast<int>(ending.code));
  parent.send(FrameKind::kResult, join_texts({head, ending.text}), {}, Deadline(0));
}

}  // namespace megamoe
