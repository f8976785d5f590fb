#include "runtime/faults.hpp"

#include "base/check.hpp"
#include "runtime/group/link.hpp"

namespace megamoe {
namespace {

std::string described(const Wait& wait) {
  const int n = wait.subject;
  switch (wait.what) {
    case WaitFor::kNothing: return "nothing";
    case WaitFor::kWorkers: return sentence("all workers of its rank at barrier ", n);
    case WaitFor::kRank: return sentence("rank ", wait.awaited_rank, " at barrier ", n);
    case WaitFor::kGate: return sentence("its rank to pass barrier ", n);
    case WaitFor::kRows: return sentence("the rows of pool block ", n);
    case WaitFor::kLinear1: return sentence("linear 1 of pool block ", n);
    case WaitFor::kRingPlace: return sentence("room in the pool for block ", n);
    case WaitFor::kRoles: return sentence("the other roles of its worker at part ", n);
    case WaitFor::kPipeline: return sentence("stage ", n, " of the pipeline");
  }
  return sentence("wait ", static_cast<int>(wait.what));
}

bool is_at_barrier(WaitFor what) {
  return what == WaitFor::kWorkers || what == WaitFor::kRank || what == WaitFor::kGate;
}

}  // namespace

std::string abort_sentence(const Abort& abort) {
  switch (abort.reason) {
    case AbortReason::kNone: return "nobody gave up";
    case AbortReason::kExpired: return sentence("rank ", abort.rank, " gave up");
    case AbortReason::kDied: return sentence("rank ", abort.rank, " died");
    case AbortReason::kStopped:
      return sentence("rank ", abort.rank, " left: it failed or gave its layer back");
  }
  return sentence("abort ", abort.word());
}

std::string fault_sentence(const FaultRecord& record,
                           const std::vector<int>& late,
                           std::uint64_t timeout_ms) {
  const bool is_own =
      record.abort.reason == AbortReason::kExpired && record.abort.rank == record.rank;
  std::string text = sentence("rank ", record.rank, ", worker ", record.worker, ": ");
  text += is_own ? sentence("gave up after ", timeout_ms, " ms without progress, waiting for ")
                 : sentence("left while waiting for ");
  text += sentence(described(record.wait),
                   " (seen ",
                   record.observation.seen,
                   ", wanted ",
                   record.observation.expected,
                   ")");
  if (!is_own) return text + ": " + abort_sentence(record.abort);
  if (is_at_barrier(record.wait.what) && !late.empty())
    text += sentence("; ", rank_list(late), late.size() == 1 ? " was" : " were", " not there");
  return text;
}

std::string refusal_sentence(const Refusal& refusal, const Problem& problem) {
  const std::string rank = sentence("rank ", refusal.rank);
  switch (refusal.kind) {
    case RefusalKind::kNone: return "nothing is refused";
    case RefusalKind::kTooManyTokens:
      return sentence("num_tokens is ",
                      refusal.token,
                      " on ",
                      rank,
                      "; the layer was made for 0 to ",
                      problem.capacity);
    case RefusalKind::kExpertId:
      return sentence("topk_ids of ",
                      rank,
                      ", token ",
                      refusal.token,
                      ", slot ",
                      refusal.slot,
                      " is ",
                      refusal.value,
                      "; the layer has experts 0 to ",
                      problem.experts - 1,
                      ", and ids below 0 are masked");
    case RefusalKind::kMissingExpert:
      return sentence("local expert ",
                      refusal.value,
                      " of ",
                      rank,
                      " (expert ",
                      refusal.rank * problem.experts_per_rank() + refusal.value,
                      ") has no weights yet");
    case RefusalKind::kOutput:
      return sentence("output of ",
                      rank,
                      " is at address ",
                      refusal.value,
                      "; it must be a multiple of 16 and not null");
    case RefusalKind::kOutputPlace:
      return sentence("output of ",
                      rank,
                      " is at address ",
                      refusal.value,
                      ", which its machine can't write: it must lie in memory of the rank's card");
  }
  return sentence("refusal ", static_cast<int>(refusal.kind), " of ", rank);
}

}  // namespace megamoe
