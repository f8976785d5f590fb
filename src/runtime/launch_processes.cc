#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/check.hpp"
#include "megamoe/layer_options.hpp"
#include "runtime/child.hpp"
#include "runtime/group/socket_link.hpp"
#include "runtime/launch.hpp"
#include "runtime/system_error.hpp"

namespace megamoe {
namespace {

/// What a rank may still take to end after another has failed: it learns of that at its next wait.
constexpr std::chrono::milliseconds kGrace{5'000};

constexpr std::array kHeldSignals = {SIGINT, SIGTERM, SIGHUP};

struct SocketPair {
  FrameSocket first, second;
};

SocketPair make_pair_of_sockets() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_system_error("socketpair", errno);
  return {FrameSocket(FileHandle(ends[0])), FrameSocket(FileHandle(ends[1]))};
}

/// The star of a SocketLink, made before the ranks are: element r is rank r's.
std::vector<std::vector<FrameSocket>> make_star(int ranks) {
  std::vector<std::vector<FrameSocket>> star;
  for (int rank = 0; rank < ranks; ++rank)
    star.emplace_back(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 1; rank < star.size(); ++rank) {
    SocketPair pair = make_pair_of_sockets();
    star.front()[rank] = std::move(pair.first);
    star[rank].front() = std::move(pair.second);
  }
  return star;
}

/// While it lives, signals that would end this process are held back: descriptor() becomes
/// readable.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held{};
    sigemptyset(&held);
    for (const int signal : kHeldSignals)
      sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
    file_ = FileHandle(signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
    if (file_.is_open()) return;
    const int error = errno;
    release();
    throw_system_error("signalfd", error);
  }
  ~HeldSignals() { release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void release() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  int descriptor() const { return file_.get(); }
  int take() const {
    signalfd_siginfo info{};
    const bool is_read = read(descriptor(), &info, sizeof info) == sizeof info;
    return is_read ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_{};
  FileHandle file_;
};

/// A rank's whole life in its own process. Leaves by _exit: what the parent had open or registered
/// is not the child's to finish.
[[noreturn]] void live_as_child(int rank,
                                std::vector<FrameSocket> sockets,
                                FrameSocket parent,
                                const LinkBody& body) {
  const Ending ending = run_body(
      [&](const std::shared_ptr<Link>&) {
        return body(SocketLink::open(rank, std::move(sockets), kDefaultTimeoutMs));
      },
      nullptr);
  report_ending(parent, ending);
  std::fflush(nullptr);
  _exit(ending.is_good ? 0 : 1);
}

class Family {
 public:
  explicit Family(int ranks) : endings_(static_cast<std::size_t>(ranks)) {}
  ~Family() { end_all(); }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  void raise_children(const LinkBody& body, const HeldSignals& signals) {
    auto star = make_star(static_cast<int>(endings_.size()));
    const pid_t parent = getpid();
    std::fflush(nullptr);  // or each child would write what waits there once more
    for (std::size_t rank = 0; rank < star.size(); ++rank) {
      SocketPair report = make_pair_of_sockets();
      const pid_t pid = fork();
      if (pid < 0) throw_system_error(sentence("fork of rank ", rank), errno);
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);  // it died before that was set
        signals.release();
        auto mine = std::move(star[rank]);
        star.clear();
        report.first.close();
        children_.clear();
        live_as_child(static_cast<int>(rank), std::move(mine), std::move(report.second), body);
      }
      children_.emplace_back(static_cast<int>(rank), pid, std::move(report.first));
    }
  }

  /// Waits for all; or ends all because of a signal, and says which.
  int await_all(const HeldSignals& signals) {
    while (!children_.empty()) {
      std::vector<pollfd> entries{{signals.descriptor(), POLLIN, 0}};
      for (const Child& child : children_)
        entries.push_back({child.descriptor(), POLLIN, 0});
      const int num_ready = poll(entries.data(), entries.size(), milliseconds_left());
      if (num_ready < 0) continue;
      if (num_ready == 0) {
        end_stragglers();
        return 0;
      }
      if (entries.front().revents != 0) {
        end_all();
        return signals.take();
      }
      for (std::size_t i = children_.size(); i-- > 0;)
        if (entries[i + 1].revents != 0) finish(i);
    }
    return 0;
  }

  std::vector<Ending> endings() { return std::move(endings_); }

 private:
  void finish(std::size_t index) {
    Child& child = children_[index];
    Ending& ending = endings_[static_cast<std::size_t>(child.rank())];
    ending = child.await();
    if (!ending.is_good && last_moment_ == kNever) last_moment_ = Clock::now() + kGrace;
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  /// For poll: without a bound while all is well.
  int milliseconds_left() const {
    if (last_moment_ == kNever) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(last_moment_ - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(left, 0));
  }

  /// Ranks that are stopped, or stuck in what is no wait. They are not the cause: the others' waits
  /// say who was waited for.
  void end_stragglers() {
    std::vector<int> ranks;
    for (const Child& child : children_)
      ranks.push_back(child.rank());
    end_all();
    for (const int rank : ranks)
      endings_[static_cast<std::size_t>(rank)] = {
          .text = sentence("rank ",
                           rank,
                           " did not end within ",
                           kGrace.count(),
                           " ms of another rank's failure, and was ended"),
          .code = ErrorCode::kRunFailed};
  }

  void end_all() {
    for (const Child& child : children_)
      kill(child.pid(), SIGKILL);
    while (!children_.empty())
      finish(children_.size() - 1);
  }

  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  std::vector<Ending> endings_;
  std::vector<Child> children_;
  Clock::time_point last_moment_ = kNever;  // of all ranks, once one has failed
};

}  // namespace

std::vector<Ending> run_in_processes(int ranks, const LinkBody& body) {
  int signal = 0;
  Family family(ranks);
  {
    const HeldSignals signals;
    family.raise_children(body, signals);
    signal = family.await_all(signals);
  }
  if (signal == 0) return family.endings();
  raise(signal);
  throw Error(ErrorCode::kRunFailed, sentence("the ranks were ended by signal ", signal));
}

}  // namespace megamoe
