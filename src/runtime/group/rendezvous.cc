#include "runtime/group/rendezvous.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "runtime/deadline.hpp"
#include "runtime/group/frame_socket.hpp"
#include "runtime/group/socket_link.hpp"
#include "runtime/group/text_list.hpp"
#include "runtime/poll_events.hpp"
#include "runtime/system_error.hpp"

namespace megamoe {
namespace {

constexpr auto kRetry = std::chrono::milliseconds(2);
// A newcomer says at once who it is; one that doesn't is no rank of ours.
constexpr std::uint64_t kHelloMs = 1000;
// After a mismatch: for those that are about to come, so that they are told as well.
constexpr std::uint64_t kLingerMs = 1000;

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

/// A leading zero makes it abstract.
Address address_of(const std::string& name) {
  const std::string full = "megamoe/" + name;
  Address address;
  require(!name.empty() && full.size() < sizeof address.name.sun_path - 1,
          ErrorCode::kInvalidArgument,
          "the rendezvous name \"",
          name,
          "\" has ",
          name.size(),
          " characters; 1 to ",
          sizeof address.name.sun_path - 2 - std::strlen("megamoe/"),
          " are possible");
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, full.data(), full.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
  return address;
}

const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.name);
}

/// -1 for what is none.
int number_in(const std::string& text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end ? value : -1;
}

FileHandle new_socket() {
  FileHandle handle(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!handle.is_open()) throw_system_error("socket", errno);
  return handle;
}

/// Rank 0's part: takes in the others until all are there.
class Reception {
 public:
  Reception(int ranks, const std::string& name, std::uint64_t timeout_ms)
      : ranks_(ranks),
        name_(name),
        timeout_ms_(timeout_ms),
        listener_(new_socket()),
        sockets_(static_cast<std::size_t>(ranks)) {
    const Address address = address_of(name);
    if (bind(listener_.get(), generic(address), address.bytes) != 0) refuse_name(errno);
    if (listen(listener_.get(), SOMAXCONN) != 0) throw_system_error("listen", errno);
  }

  std::vector<FrameSocket> receive_all() {
    Deadline deadline(timeout_ms_);
    for (int newcomers = 1; newcomers < ranks_; ++newcomers) {
      FrameSocket newcomer;
      if (!accept_one(newcomer, deadline)) break;
      const std::string problem = seat(std::move(newcomer));
      if (problem.empty() || !mismatch_.empty()) continue;
      mismatch_ = problem;
      deadline = deadline.at_most(kLingerMs);
    }
    if (!mismatch_.empty()) refuse_all(ErrorCode::kInvalidArgument, mismatch_);
    const std::vector<int> missing = missing_ranks();
    if (!missing.empty())
      refuse_all(ErrorCode::kRunFailed,
                 sentence("rank 0 gave up after ",
                          timeout_ms_,
                          " ms waiting for ",
                          rank_list(missing),
                          " at the rendezvous \"",
                          name_,
                          "\""));
    return std::move(sockets_);
  }

 private:
  [[noreturn]] void refuse_name(int error) const {
    require(error != EADDRINUSE,
            ErrorCode::kInvalidArgument,
            "another process on this host is rank 0 of a rendezvous \"",
            name_,
            "\": two processes claim rank 0, or two groups use one name");
    throw_system_error("bind", error);
  }

  /// Whoever else uses this host can come to an abstract socket; another user's processes are sent
  /// away without a word, and the group goes on.
  bool accept_one(FrameSocket& newcomer, const Deadline& deadline) const {
    pollfd entry{listener_.get(), POLLIN, 0};
    for (;;) {
      const int ready = poll_events({&entry, 1}, deadline.poll_ms());
      if (ready == 0) return false;
      if (ready < 0) continue;
      newcomer = FrameSocket(
          FileHandle(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
      if (newcomer.is_open() && newcomer.is_same_user()) return true;
      if (newcomer.is_open()) continue;
      // It has left again, or there is no descriptor for it, which poll() will not wait for.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        throw_system_error(sentence("accepting a rank at the rendezvous \"", name_, "\""), errno);
    }
  }

  /// Gives the newcomer its rank's place; else says what is wrong with it, and keeps it to be told.
  std::string seat(FrameSocket newcomer) {
    Frame hello;
    if (newcomer.receive(hello, Deadline(kHelloMs)) != Transfer::kDone ||
        hello.kind != FrameKind::kHello)
      return sentence("a process that is no rank of ours came to the rendezvous \"", name_, "\"");
    const auto parts = split_texts(hello.body);
    const int rank = parts.size() == 2 ? number_in(parts[0]) : -1;
    const int ranks = parts.size() == 2 ? number_in(parts[1]) : -1;
    std::string problem;
    if (ranks != ranks_)
      problem = sentence("ranks 0 and ",
                         rank,
                         " disagree on ranks of the group: ",
                         ranks_,
                         " on rank 0, ",
                         ranks,
                         " on rank ",
                         rank);
    else if (rank < 1 || rank >= ranks)
      problem =
          sentence("a process came as rank ", rank, "; the others are ranks 1 to ", ranks - 1);
    else if (sockets_[static_cast<std::size_t>(rank)].is_open())
      problem = sentence("two processes claim rank ", rank, " of the group");
    if (problem.empty())
      sockets_[static_cast<std::size_t>(rank)] = std::move(newcomer);
    else
      unseated_.push_back(std::move(newcomer));
    return problem;
  }

  std::vector<int> missing_ranks() const {
    std::vector<int> missing;
    for (int rank = 1; rank < ranks_; ++rank)
      if (!sockets_[static_cast<std::size_t>(rank)].is_open()) missing.push_back(rank);
    return missing;
  }

  [[noreturn]] void refuse_all(ErrorCode code, const std::string& why) {
    const std::string body = join_texts({std::to_string(static_cast<int>(code)), why});
    for (auto* side : {&sockets_, &unseated_})
      for (FrameSocket& socket : *side)
        if (socket.is_open()) socket.send(FrameKind::kRefusal, body, {}, Deadline(kHelloMs));
    throw Error(code, why);
  }

  int ranks_;
  std::string name_;
  std::uint64_t timeout_ms_;
  FileHandle listener_;
  std::vector<FrameSocket> sockets_, unseated_;  // by rank; those without a place
  std::string mismatch_;
};

FileHandle connect_to(const std::string& name, int rank, std::uint64_t timeout_ms) {
  const Address address = address_of(name);
  const Deadline deadline(timeout_ms);
  for (;;) {
    FileHandle handle = new_socket();
    if (connect(handle.get(), generic(address), address.bytes) == 0) return handle;
    if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
      throw_system_error(sentence("connecting to the rendezvous \"", name, "\""), errno);
    require(!deadline.passed(),
            ErrorCode::kRunFailed,
            "rank ",
            rank,
            " gave up after ",
            timeout_ms,
            " ms waiting for rank 0 at the rendezvous \"",
            name,
            "\"");
    std::this_thread::sleep_for(kRetry);
  }
}

/// A seat at rank 0's table, or the reason why the group does not come about.
std::vector<FrameSocket> take_seat(int rank,
                                   int ranks,
                                   const std::string& name,
                                   std::uint64_t timeout_ms) {
  std::vector<FrameSocket> sockets(static_cast<std::size_t>(ranks));
  FrameSocket socket(connect_to(name, rank, timeout_ms));
  require(socket.is_same_user(),
          ErrorCode::kInvalidArgument,
          "another user of this host has the rendezvous \"",
          name,
          "\": it takes another name");
  const Deadline deadline(timeout_ms == 0 ? 0 : timeout_ms + kLingerMs);
  socket.send(
      FrameKind::kHello, join_texts({std::to_string(rank), std::to_string(ranks)}), {}, deadline);
  Frame answer;
  const Transfer transfer = socket.receive(answer, deadline);
  const bool is_seated = transfer == Transfer::kDone && answer.kind == FrameKind::kHello;
  if (!is_seated && transfer == Transfer::kDone) {
    const auto parts = split_texts(answer.body);
    MEGAMOE_CHECK(parts.size() == 2);
    throw Error(static_cast<ErrorCode>(number_in(parts[0])), parts[1]);
  }
  require(is_seated,
          ErrorCode::kRunFailed,
          transfer == Transfer::kExpired
              ? sentence("rank ", rank, " gave up after ", timeout_ms, " ms waiting for the others")
              : sentence("rank 0 died or left while rank ", rank, " waited for the others"),
          " at the rendezvous \"",
          name,
          "\"");
  sockets.front() = std::move(socket);
  return sockets;
}

}  // namespace

std::shared_ptr<Link> meet_by_name(int rank,
                                   int ranks,
                                   const std::string& name,
                                   std::uint64_t timeout_ms) {
  std::vector<FrameSocket> sockets;
  if (rank == 0) {
    sockets = Reception(ranks, name, timeout_ms).receive_all();
    for (std::size_t peer = 1; peer < sockets.size(); ++peer)
      sockets[peer].send(FrameKind::kHello, "", {}, Deadline(kHelloMs));
  } else {
    sockets = take_seat(rank, ranks, name, timeout_ms);
  }
  return SocketLink::open(rank, std::move(sockets), timeout_ms);
}

}  // namespace megamoe
