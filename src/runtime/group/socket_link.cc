#include "runtime/group/socket_link.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.hpp"
#include "runtime/configuration.hpp"
#include "runtime/group/host.hpp"
#include "runtime/group/text_list.hpp"
#include "runtime/poll_events.hpp"

namespace megamoe {
namespace {

// Rank 0 knows who is missing; the others give it so much longer to say so.
constexpr std::uint64_t kGraceMs = 2000;
// A process's sockets close a little before its end shows.
constexpr int kEndingMs = 100;

/// One socket that is ready to read, or has been closed; -1 when the deadline passed.
int next_ready(const std::vector<FrameSocket>& sockets,
               const std::vector<int>& pending,
               const Deadline& deadline) {
  std::vector<pollfd> entries;
  for (const int peer : pending)
    entries.push_back({sockets[static_cast<std::size_t>(peer)].descriptor(), POLLIN, 0});
  for (;;) {
    const int ready = poll_events(entries, deadline.poll_ms());
    if (ready == 0) return -1;
    if (ready < 0) continue;
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (entries[i].revents != 0) return pending[i];
  }
}

}  // namespace

SocketLink::SocketLink(int rank, std::vector<FrameSocket> sockets)
    : Link(rank, static_cast<int>(sockets.size())), sockets_(std::move(sockets)) {}

std::shared_ptr<Link> SocketLink::open(int rank,
                                       std::vector<FrameSocket> sockets,
                                       std::uint64_t timeout_ms) {
  std::shared_ptr<SocketLink> link(new SocketLink(rank, std::move(sockets)));
  Gathered all = link->meet({"the rendezvous of the group", timeout_ms},
                            host_configuration(link->ranks()).text(),
                            link->life_line_.for_others());
  require_same(all.texts, "the group");
  if (!all.handles.empty()) all.handles[static_cast<std::size_t>(rank)].close();
  link->deaths_ = std::make_unique<DeathWatch>(std::move(all.handles));
  return link;
}

std::vector<std::string> SocketLink::gather(const Meeting& meeting, const std::string& mine) {
  return meet(meeting, mine, -1).texts;
}

std::shared_ptr<Segment> SocketLink::allocate(std::uint64_t bytes) const {
  return Segment::shareable(bytes);
}

std::vector<std::shared_ptr<Segment>> SocketLink::share(const Meeting& meeting,
                                                        std::shared_ptr<Segment> mine) {
  Gathered all = meet(meeting, "", mine->descriptor());
  std::vector<std::shared_ptr<Segment>> segments;
  for (std::size_t peer = 0; peer < all.handles.size(); ++peer) {
    const bool is_own = static_cast<int>(peer) == rank();
    segments.push_back(is_own ? mine
                              : Segment::received(std::move(all.handles[peer]), mine->bytes()));
  }
  return segments;
}

std::shared_ptr<void> SocketLink::watch(OnDeath on_death) {
  return deaths_->observe(std::move(on_death));
}

SocketLink::Gathered SocketLink::meet(const Meeting& meeting, const std::string& mine, int handle) {
  if (!broken_.empty()) throw Error(ErrorCode::kRunFailed, broken_);
  return rank() == 0 ? collect(meeting, mine, handle) : bring(meeting, mine, handle);
}

SocketLink::Gathered SocketLink::collect(const Meeting& meeting,
                                         const std::string& mine,
                                         int handle) {
  const Deadline deadline(meeting.timeout_ms);
  Gathered all;
  all.texts.resize(sockets_.size());
  all.texts.front() = mine;
  if (handle >= 0) {
    all.handles.resize(sockets_.size());
    all.handles.front() = FileHandle(dup(handle));
  }
  std::vector<int> pending;
  for (int peer = 1; peer < ranks(); ++peer) {
    if (!sockets_[static_cast<std::size_t>(peer)].is_open()) break_up(departure(peer, meeting));
    pending.push_back(peer);
  }
  while (!pending.empty()) {
    const int peer = next_ready(sockets_, pending, deadline);
    if (peer < 0)
      break_up(sentence("rank 0 gave up after ",
                        meeting.timeout_ms,
                        " ms waiting for ",
                        rank_list(pending),
                        " at ",
                        meeting.what));
    take_offer(peer, meeting, all, deadline);
    pending.erase(std::find(pending.begin(), pending.end(), peer));
  }
  hand_out(meeting, all, handle);
  return all;
}

void SocketLink::take_offer(int peer,
                            const Meeting& meeting,
                            Gathered& all,
                            const Deadline& deadline) {
  const auto index = static_cast<std::size_t>(peer);
  Frame offer;
  if (sockets_[index].receive(offer, deadline) != Transfer::kDone)
    break_up(departure(peer, meeting));
  auto parts = split_texts(offer.body);  // the meeting's name, and the text
  if (offer.kind != FrameKind::kOffer || parts.size() != 2)
    break_up(sentence("rank ", peer, " sent something else than its part of ", meeting.what));
  if (parts[0] != meeting.what)
    break_up(sentence("rank ",
                      peer,
                      " is at ",
                      parts[0],
                      " while rank 0 is at ",
                      meeting.what,
                      "; collective calls must come in the same order on every rank"));
  if (offer.handles.size() != (all.handles.empty() ? 0U : 1U))
    break_up(sentence("rank ",
                      peer,
                      " sent ",
                      offer.handles.size(),
                      " descriptors at ",
                      meeting.what,
                      "; it may have too many files open (ulimit -n)"));
  all.texts[index] = std::move(parts[1]);
  if (!all.handles.empty()) all.handles[index] = std::move(offer.handles.front());
}

/// A rank that dies now, or does not take what it came for within the meeting's bound, has left;
/// the others go on, and notice at the next meeting.
void SocketLink::hand_out(const Meeting& meeting, const Gathered& all, int own_handle) {
  std::vector<int> handles;
  for (const FileHandle& handle : all.handles)
    handles.push_back(handle.get());
  if (!handles.empty()) handles.front() = own_handle;
  const std::string body = join_texts(all.texts);
  for (int peer = 1; peer < ranks(); ++peer) {
    FrameSocket& socket = sockets_[static_cast<std::size_t>(peer)];
    const Deadline deadline(meeting.timeout_ms);
    if (socket.send(FrameKind::kResult, body, handles, deadline) != Transfer::kDone) socket.close();
  }
}

SocketLink::Gathered SocketLink::bring(const Meeting& meeting,
                                       const std::string& mine,
                                       int handle) {
  const Deadline deadline(meeting.timeout_ms == 0 ? 0 : meeting.timeout_ms + kGraceMs);
  FrameSocket& socket = sockets_.front();
  const std::vector<int> handles(handle < 0 ? 0 : 1, handle);
  Frame answer;
  // Rank 0 may have refused the meeting and gone before this rank's offer: its refusal waits.
  socket.send(FrameKind::kOffer, join_texts({meeting.what, mine}), handles, deadline);
  const Transfer transfer = socket.receive(answer, deadline);
  if (transfer == Transfer::kExpired)
    break_up(sentence("rank ",
                      rank(),
                      " gave up after ",
                      meeting.timeout_ms,
                      " ms waiting for rank 0 at ",
                      meeting.what));
  if (transfer != Transfer::kDone) break_up(departure(0, meeting));
  if (answer.kind == FrameKind::kRefusal) break_up(answer.body);
  Gathered all{split_texts(answer.body), std::move(answer.handles)};
  const auto expected = static_cast<std::size_t>(ranks());
  if (all.texts.size() != expected || all.handles.size() != (handle < 0 ? 0U : expected))
    break_up(sentence("rank ",
                      rank(),
                      " got ",
                      all.handles.size(),
                      " descriptors at ",
                      meeting.what,
                      "; it may have too many files open (ulimit -n)"));
  return all;
}

void SocketLink::break_up(const std::string& why) {
  broken_ = why;
  for (FrameSocket& socket : sockets_) {
    if (rank() == 0 && socket.is_open())
      socket.send(FrameKind::kRefusal, why, {}, Deadline(kGraceMs));
    socket.close();
  }
  throw Error(ErrorCode::kRunFailed, why);
}

std::string SocketLink::departure(int peer, const Meeting& meeting) const {
  const bool has_died = deaths_ != nullptr && deaths_->has_died(peer, kEndingMs);
  const char* const how = deaths_ == nullptr ? " died or left" : has_died ? " died" : " left";
  return sentence("rank ", peer, how, " while rank ", rank(), " waited for it at ", meeting.what);
}

}  // namespace megamoe
