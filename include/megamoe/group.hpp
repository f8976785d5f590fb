#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "megamoe/layer_options.hpp"

namespace megamoe {

class Link;  // how the ranks reach each other; src/runtime

/// Where a rank stands in a group of processes that somebody else started on this host.
struct ProcessPlace {
  int rank = 0;      ///< 0..ranks-1, each taken once
  int ranks = 1;     ///< the same on all of them
  std::string name;  ///< of the meeting, the same on all ranks and no other group's on this host
                     ///< now; not a file: it names an abstract socket, which ends with the process
  std::uint64_t timeout_ms = kDefaultTimeoutMs;  ///< how long to wait for the others; 0: for ever
};

/// The ranks that share a layer's experts, as one of them sees it. Move-only; used by one thread at
/// a time. Whatever is collective is called by every rank, equally often and in the same order.
/// Layers keep what they need of their group: it may go before them.
///
/// A rank whose process dies is noticed within milliseconds, by whatever the others wait for then
/// or begin later; so is one that destroys its group or its layers while others still meet there.
class Group {
 public:
  /// All ranks in this process; rank r is element r. Each is for a thread of its own.
  static std::vector<Group> in_process(int ranks);

  /// Collective. One rank a process, all on this host and in one network namespace. Throws
  /// Error(kRunFailed) naming the ranks that did not come, and Error(kInvalidArgument) on every
  /// rank when they disagree on `ranks`, on the host or on this library's version, or two claim one
  /// rank.
  static Group processes(const ProcessPlace& place);

  /// Collective: processes() with the place that a launcher left in the environment.
  ///   rank, ranks  RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and
  ///                PMI_SIZE, or SLURM_PROCID and SLURM_NTASKS: the first pair that is set
  ///   name         MEGAMOE_RENDEZVOUS, else made from MASTER_PORT or the launcher's job number
  static Group from_environment(std::uint64_t timeout_ms = kDefaultTimeoutMs);

  explicit Group(std::shared_ptr<Link> link);
  ~Group();
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;

  int rank() const;
  int ranks() const;

  /// Collective: every rank's `mine`, by rank. For small things, such as results to add up.
  std::vector<std::string> gather(const std::string& mine,
                                  std::uint64_t timeout_ms = kDefaultTimeoutMs);

  const std::shared_ptr<Link>& link() const;  ///< for this library's layers

 private:
  std::shared_ptr<Link> link_;
};

}  // namespace megamoe
