#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/group/death_watch.hpp"
#include "runtime/group/frame_socket.hpp"
#include "runtime/group/life_line.hpp"
#include "runtime/group/link.hpp"

namespace megamoe {

/// The link of ranks that are processes of one host. A star: rank 0 has a socket to each other
/// rank, collects what they bring and hands out the whole.
class SocketLink : public Link {
 public:
  /// `sockets` by rank: on rank 0 one to each other rank, elsewhere only the one to rank 0.
  /// Collective: the ranks tell each other who and where they are; throws the same
  /// Error(kInvalidArgument) on every rank when they are not of one host and version.
  static std::shared_ptr<Link> open(int rank,
                                    std::vector<FrameSocket> sockets,
                                    std::uint64_t timeout_ms);

  bool is_in_process() const override { return false; }
  std::vector<std::string> gather(const Meeting& meeting, const std::string& mine) override;
  std::shared_ptr<Segment> allocate(std::uint64_t bytes) const override;
  std::vector<std::shared_ptr<Segment>> share(const Meeting& meeting,
                                              std::shared_ptr<Segment> mine) override;
  std::shared_ptr<void> watch(OnDeath on_death) override;

 private:
  /// What every rank brought to a meeting.
  struct Gathered {
    std::vector<std::string> texts;
    std::vector<FileHandle> handles;  // empty, or by rank
  };

  SocketLink(int rank, std::vector<FrameSocket> sockets);

  Gathered meet(const Meeting& meeting, const std::string& mine, int handle);
  Gathered collect(const Meeting& meeting, const std::string& mine, int handle);
  void take_offer(int peer, const Meeting& meeting, Gathered& all, const Deadline& deadline);
  void hand_out(const Meeting& meeting, const Gathered& all, int own_handle);
  Gathered bring(const Meeting& meeting, const std::string& mine, int handle);
  [[noreturn]] void break_up(const std::string& why);
  std::string departure(int peer, const Meeting& meeting) const;

  std::vector<FrameSocket> sockets_;
  LifeLine life_line_;
  std::unique_ptr<DeathWatch> deaths_;  // once the ranks have met
  std::string broken_;                  // why there are no more meetings
};

}  // namespace megamoe
