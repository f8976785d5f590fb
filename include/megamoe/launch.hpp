#pragma once

#include <functional>
#include <string>
#include <vector>

#include "megamoe/error.hpp"
#include "megamoe/group.hpp"

namespace megamoe {

/// How one rank ended.
struct RankOutcome {
  bool is_good = false;
  std::string result;                     ///< what the body returned
  ErrorCode code = ErrorCode::kInternal;  ///< of a rank that is not good
  std::string sentence;                   ///< why it is not good
  int signal = 0;                         ///< the signal that killed the rank's process, else 0
};

struct LaunchResult {
  std::vector<RankOutcome> ranks;

  bool is_good() const;
  /// The outcome to report: of a rank that was killed, else of one that failed by itself, else of
  /// one that failed because of another. Only when not is_good().
  const RankOutcome& cause() const;
  /// The sentences of all ranks that are not good, the cause's first, each once; a line each.
  std::string explain() const;
};

/// What one rank does. What it returns goes to the caller of launch_*; what it throws becomes the
/// rank's sentence.
using RankBody = std::function<std::string(Group group)>;

/// Runs `body` in `ranks` direct children of this process, which computes nothing itself and must
/// have one thread only. Returns when all have ended. The children die with this process; SIGINT
/// and SIGTERM to it end them first, and then it. A child that dies makes the others' calls fail.
LaunchResult launch_processes(int ranks, const RankBody& body);

/// The same with threads of this process.
LaunchResult launch_threads(int ranks, const RankBody& body);

}  // namespace megamoe
