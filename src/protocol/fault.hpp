#pragma once

#include <cstdint>

#include "base/portable.hpp"
#include "protocol/counters.hpp"

namespace megamoe {

/// What a wait is for; `subject` of a Wait says which one.
enum class WaitFor : std::uint32_t {
  kNothing,
  kWorkers,    ///< all workers of the rank at a barrier; subject: the barrier, 1..3
  kRank,       ///< another rank at a barrier; subject: the barrier, 1..3
  kGate,       ///< the leader to open a barrier's gate; subject: the barrier, 1..3
  kRows,       ///< rows of a pool block; subject: the pool block
  kLinear1,    ///< linear 1 of a pool block; subject: the pool block
  kRingPlace,  ///< linear 2 of the block that lay in a ring place before; subject: the pool block
               ///< that wants it
  kRoles,      ///< the other roles of the worker; subject: the part of the call, 1..2
  kPipeline,   ///< a stage of an on-chip pipeline; subject: the stage
};

/// True when somebody else of the same rank waits for the cause itself, or is it: the gate's opener
/// for another rank, a worker's other role for a ring place, a stage's producer for rows. Its
/// record says more, so it gets the time to speak first.
constexpr bool is_second_hand(WaitFor what) {
  return what == WaitFor::kGate || what == WaitFor::kRoles || what == WaitFor::kPipeline;
}

/// One wait: what for, which one, and whose progress keeps it alive.
struct Wait {
  WaitFor what = WaitFor::kNothing;
  int subject = 0;
  int awaited_rank = 0;  ///< who is late if it never ends
  int watched_ranks =
      0;  ///< 0: the awaited rank's progress alone counts; R: that of any of R ranks
};

/// What a wait saw last.
struct Observation {
  std::uint64_t seen = 0;
  std::uint64_t expected = 0;

  constexpr bool reached() const { return seen >= expected; }
};

/// Why a rank left a call early.
enum class AbortReason : std::uint32_t {
  kNone,
  kExpired,  ///< a wait outlasted its bound
  kDied,     ///< a rank's process ended
  kStopped,  ///< the caller stopped the rank (another rank of the same process failed)
};

/// What the abort word holds: who started it, and why.
struct Abort {
  AbortReason reason = AbortReason::kNone;
  int rank = 0;  ///< kExpired: the rank that gave up; kDied: the rank that died

  static constexpr Abort of(std::uint32_t word) {
    return {static_cast<AbortReason>(word >> 16), static_cast<int>(word & 0xFFFFU)};
  }
  constexpr std::uint32_t word() const {
    return (static_cast<std::uint32_t>(reason) << 16) | static_cast<std::uint32_t>(rank);
  }
};
static_assert(Abort::of(Abort{AbortReason::kDied, 5}.word()).rank == 5);

/// Where one worker of a rank stood when the rank left a call early; the first worker to leave
/// writes it.
struct FaultRecord {
  Abort abort;  ///< of this rank's own expiry, or the one it obeyed
  int rank = 0;
  int worker = 0;
  Wait wait;
  Observation observation;
};

/// Why a rank refused its input before anything was done. All ranks learn it in barrier 1.
enum class RefusalKind : std::uint32_t {
  kNone,
  kTooManyTokens,  ///< or fewer than none
  kExpertId,
  kMissingExpert,  ///< a local expert has no weights
  kOutput,         ///< null or misaligned
  kOutputPlace,    ///< in memory that the machine can't write
};

struct Refusal {
  RefusalKind kind = RefusalKind::kNone;
  std::int32_t rank = 0;
  std::int64_t token = 0;  ///< kTooManyTokens: how many there were
  std::int64_t slot = 0;
  std::int64_t value = 0;  ///< kExpertId: the id; kMissingExpert: the local expert; kOutput: the
                           ///< address
};

/// Starts anew whenever a rank that the wait depends on shows progress; expires when none did for
/// the call's bound. A first-hand wait so takes up to two bounds to notice that progress has
/// stopped; a second-hand one looks every three bounds, and not before, since looking may mean to
/// read a word of every rank. It expires after six at the earliest.
template <class M>
class Patience {
 public:
  MEGAMOE_PROTOCOL Patience(M& m, const Wait& wait)
      : wait_(wait),
        progress_(is_second_hand(wait.what) ? kNotLookedYet : progress(m)),
        since_(m.now_ms()) {}

  MEGAMOE_PROTOCOL bool expired(M& m) {
    const std::uint64_t bound = m.timeout_ms() * (is_second_hand(wait_.what) ? 3 : 1);
    if (bound == 0) return false;
    const std::uint64_t now = m.now_ms();
    if (now - since_ < bound) return false;
    const std::uint64_t latest = progress(m);
    if (latest == progress_) return true;
    progress_ = latest;
    since_ = now;
    return false;
  }

 private:
  static constexpr std::uint64_t kNotLookedYet = ~std::uint64_t{0};

  MEGAMOE_PROTOCOL std::uint64_t progress(M& m) const {
    if (wait_.watched_ranks == 0) return m.progress_of(wait_.awaited_rank);
    std::uint64_t sum = 0;
    for (int rank = 0; rank < wait_.watched_ranks; ++rank)
      sum += m.progress_of(rank);
    return sum;
  }

  Wait wait_;
  std::uint64_t progress_;
  std::uint64_t since_;
};

/// Vain polls are counted up to this, then again from half of it: a wait without a bound may last
/// for weeks.
inline constexpr int kMostPolls = 1 << 20;

/// Polls `look` until its observation is reached. False when the call is being abandoned: because
/// this wait outlasted its bound (then every peer is told), or because a peer said so; either way
/// the caller returns at once and touches nothing that others may still write. Each lane may wait
/// for a word of its own; the answer is the lane's.
template <class M, class Look>
[[nodiscard]] MEGAMOE_PROTOCOL bool wait_until(M& m, const Wait& wait, Look look) {
  Observation last = look();
  if (last.reached()) return true;
  Patience<M> patience(m, wait);
  for (int polls = 0;; polls = polls + 1 < kMostPolls ? polls + 1 : kMostPolls / 2) {
    m.pause(polls);
    last = look();
    if (last.reached()) return true;
    const Abort abort = m.abort();
    if (abort.reason != AbortReason::kNone) {
      m.leave(abort, wait, last);
      return false;
    }
    if (patience.expired(m)) {
      m.leave({AbortReason::kExpired, m.rank()}, wait, last);
      return false;
    }
  }
}

}  // namespace megamoe
