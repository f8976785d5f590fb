#include "protocol/route.hpp"
#include "sim/end_of_call.hpp"
#include "sim/oracle.hpp"

namespace megamoe::sim {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

void Oracle::published(int rank, const WorkersArrived* /*counter*/, std::uint32_t now) const {
  const RankState& s = state(rank);
  const auto workers = static_cast<std::uint64_t>(scenario_.calls[at(s.number)][at(rank)].workers);
  expect(now <= workers * (barriers_passed(rank) + 1),
         "rank ",
         rank,
         ": ",
         now,
         " arrivals of ",
         workers,
         " workers, and gate ",
         barriers_passed(rank),
         " is the last open");
}

void Oracle::published(int rank, const RolesJoined* /*counter*/, std::uint32_t now) const {
  const int teams = scenario_.layout.dispatch_teams + scenario_.layout.compute_teams;
  expect(now <= static_cast<std::uint32_t>(2 * teams),
         "rank ",
         rank,
         ": ",
         now,
         " joins of ",
         teams,
         " teams");
}

void Oracle::published(int rank, const Gate* /*counter*/, std::uint64_t now) const {
  const RankState& s = state(rank);
  const std::uint64_t barrier = now - s.first_epoch;
  expect(barrier >= 1 && barrier <= 3, "rank ", rank, " opens gate ", barrier, " of a call");
  for (int peer = 0; peer < scenario_.problem.ranks; ++peer)
    expect(state(peer).number >= s.number,
           "rank ",
           rank,
           " passes barrier ",
           barrier,
           " of call ",
           s.number,
           " before rank ",
           peer,
           " began it");
  if (barrier == 1) check_counts(rank);
  if (barrier == 2) check_all_computed();
}

void Oracle::announced(int rank, const RankArrival* counter, std::uint64_t now) {
  RankState& s = state(rank);
  const int peer = memory_.rank_of(counter, sizeof *counter);
  expect(peer >= 0, "rank ", rank, " announces outside all memory");
  const Call& call = state(peer).call;
  expect(counter == call.local(call.workspace.arrival) + rank,
         "rank ",
         rank,
         " announces itself as another rank");
  const std::uint64_t barrier = now - s.first_epoch;
  expect(barrier == barriers_passed(rank) + 1,
         "rank ",
         rank,
         " announces barrier ",
         barrier,
         " after gate ",
         barriers_passed(rank));
  // Once the first peer knows, others may begin the next call and count into this rank's words.
  if (barrier == 3 && s.announced != now) {
    const std::string left = left_behind(s.call);
    expect(left.empty(), "rank ", rank, " announces barrier 3, and ", left);
  }
  s.announced = now;
}

void Oracle::claimed(int rank, const Sent* counter, std::uint64_t now) const {
  const RankState& s = state(rank);
  const auto expert = static_cast<int>(counter - s.call.local(s.call.workspace.sent));
  const int workers = counting_workers(std::int64_t{live_tokens(s.call)} * s.call.problem.topk,
                                       scenario_.calls[at(s.number)][at(rank)].workers);
  const CountAndMarks value = CountAndMarks::of(now);
  expect(value.marks <= static_cast<std::uint32_t>(workers) &&
             static_cast<int>(value.count) <= s.expectation->received(expert, rank),
         "rank ",
         rank,
         ": sent[",
         expert,
         "] has ",
         value.count,
         " rows by ",
         value.marks,
         " workers; expected at most ",
         s.expectation->received(expert, rank),
         " by ",
         workers);
}

void Oracle::added(const ReceivedSum* counter, std::uint64_t now) const {
  const int rank = memory_.rank_of(counter, sizeof *counter);
  expect(rank >= 0, "an add outside all memory");
  const CountAndMarks value = CountAndMarks::of(now);
  expect(value.marks <= static_cast<std::uint32_t>(scenario_.problem.ranks),
         "rank ",
         rank,
         ": ",
         value.marks,
         " ranks told their count for one expert");
}

void Oracle::check_counts(int rank) const {
  const RankState& s = state(rank);
  const Workspace& w = s.call.workspace;
  const Problem& p = s.call.problem;
  for (int local = 0; local < p.experts_per_rank(); ++local) {
    const int expert = rank * p.experts_per_rank() + local;
    const CountAndMarks sum = CountAndMarks::of(s.call.local(w.received_sum)[local].value);
    expect(sum.marks == static_cast<std::uint32_t>(p.ranks) &&
               static_cast<int>(sum.count) == s.expectation->rows(expert),
           "rank ",
           rank,
           " opens gate 1 with ",
           sum.count,
           " rows by ",
           sum.marks,
           " ranks for expert ",
           expert,
           "; expected ",
           s.expectation->rows(expert),
           " by ",
           p.ranks);
    for (int source = 0; source < p.ranks; ++source) {
      const Received& received = s.call.local(w.received)[source * p.experts_per_rank() + local];
      expect(static_cast<int>(received.value) == s.expectation->received(expert, source),
             "rank ",
             rank,
             " opens gate 1 with ",
             received.value,
             " rows of rank ",
             source,
             " for expert ",
             expert,
             "; expected ",
             s.expectation->received(expert, source));
    }
  }
}

void Oracle::check_all_computed() const {
  for (const RankState& s : ranks_)
    for (const PoolState& block : s.blocks)
      expect(block.linear2_computed == s.call.ring.linear2_blocks,
             "barrier 2 is passed, and a block of local expert ",
             block.expert,
             " of rank ",
             s.call.peers.rank,
             " is not pushed");
}

void Oracle::check_clear(int rank, const void* counter, std::size_t bytes) const {
  expect(
      memory_.rank_of(counter, bytes) == rank, "rank ", rank, " clears a word that is not its own");
  expect(barriers_passed(rank) == 2,
         "rank ",
         rank,
         " clears a word after gate ",
         barriers_passed(rank));
}

void Oracle::end_call(int rank, const std::vector<Bfloat16>& output) const {
  const RankState& s = state(rank);
  const std::string wrong = wrong_result(s.call, *s.expectation, s.first_epoch, output);
  expect(wrong.empty(), wrong);
}

}  // namespace megamoe::sim
