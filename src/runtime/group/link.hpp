#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/memory/segment.hpp"

namespace megamoe {

/// A collective step of a group: how an error calls it, and how long it may take (0: any time).
struct Meeting {
  std::string what;
  std::uint64_t timeout_ms;
};

/// How one rank reaches the others outside a call: to compare, to hand out memory, to learn of
/// deaths. Everything but watch() is collective, and used by one thread at a time. A meeting that
/// fails breaks the link on every rank: each throws Error(kRunFailed) naming who was missing, then
/// and at every later meeting.
class Link {
 public:
  Link(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Whether all ranks are threads of this process.
  virtual bool is_in_process() const = 0;

  /// Every rank's text, by rank.
  virtual std::vector<std::string> gather(const Meeting& meeting, const std::string& mine) = 0;

  /// Memory that every rank can reach, in its own mapping.
  virtual std::shared_ptr<Segment> allocate(std::uint64_t bytes) const = 0;

  /// Every rank's segment, as mapped here, by rank.
  virtual std::vector<std::shared_ptr<Segment>> share(const Meeting& meeting,
                                                      std::shared_ptr<Segment> mine) = 0;

  /// Tells of every rank whose process ends, or has ended, from a thread of the link's; once it is
  /// dropped, no call is under way and none comes. Null when ranks can't die alone.
  using OnDeath = std::function<void(int rank)>;
  virtual std::shared_ptr<void> watch(OnDeath on_death) = 0;

 private:
  int rank_;
  int ranks_;
};

/// "rank 2", "ranks 1, 3 and 4".
std::string rank_list(const std::vector<int>& ranks);

}  // namespace megamoe
