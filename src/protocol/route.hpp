#pragma once

#include <cstdint>

#include "protocol/barriers.hpp"
#include "protocol/call.hpp"
#include "protocol/machine.hpp"

namespace megamoe {

inline constexpr int kPairsPerCountingWorker = 512;

/// Workers that count and claim: few for few tokens, since every one of them adds to every expert's
/// word.
constexpr int counting_workers(std::int64_t pairs, int num_workers) {
  const std::int64_t wanted = ceil_div(pairs, std::int64_t{kPairsPerCountingWorker});
  const std::int64_t least = wanted < 1 ? 1 : wanted;
  return static_cast<int>(least < num_workers ? least : num_workers);
}

constexpr bool is_valid_expert(std::int64_t id, const Problem& problem) {
  return id >= 0 && id < problem.experts;
}

/// The (token, k) pairs that one lane looks at, over all counting workers.
struct PairRange {
  std::int64_t begin, end, stride;
};

template <Machine M>
MEGAMOE_PROTOCOL PairRange pairs_of_lane(M& m, std::int64_t pairs) {
  const std::int64_t lanes = std::int64_t{m.num_teams()} * M::kLanes;
  const std::int64_t lane = std::int64_t{m.team()} * M::kLanes + m.lane();
  return {m.worker() * lanes + lane, pairs, lanes * counting_workers(pairs, m.num_workers())};
}

/// An id past the last expert is treated as masked; the host refuses it where it looks first, and
/// is told where it doesn't.
template <Machine M>
MEGAMOE_PROTOCOL void note_bad_id(M& m, const Call& call, std::int64_t pair) {
  if (m.claim(call.local(call.workspace.bad_ids), 1U) == 0)
    *call.local(call.workspace.first_bad_pair) = static_cast<std::uint64_t>(pair);
}

/// Where one row of a local expert came from: written by the source rank, read by the puller.
constexpr std::uint64_t source_index(const Problem& p,
                                     int local_expert,
                                     int source_rank,
                                     std::uint64_t slot) {
  const auto lists =
      static_cast<std::uint64_t>(local_expert) * static_cast<std::uint64_t>(p.ranks) +
      static_cast<std::uint64_t>(source_rank);
  return lists * static_cast<std::uint64_t>(p.pairs()) + slot;
}

/// Steps 1 to 3: counts this worker's pairs for each expert, claims that many source slots with one
/// add an expert, and writes each pair into its slot on the expert's rank.
template <Machine M>
MEGAMOE_PROTOCOL void route(M& m, const Call& call) {
  const Problem& p = call.problem;
  const std::int64_t pairs = std::int64_t{live_tokens(call)} * p.topk;
  if (m.worker() >= counting_workers(pairs, m.num_workers())) return;
  const std::int64_t* ids = call.local(call.workspace.topk_ids);
  const PairRange mine = pairs_of_lane(m, pairs);

  for (std::int64_t pair = mine.begin; pair < mine.end; pair += mine.stride) {
    if (is_valid_expert(ids[pair], p))
      m.claim_slot(static_cast<int>(ids[pair]), 1U);
    else if (ids[pair] >= 0)
      note_bad_id(m, call, pair);
  }
  m.sync_role();

  Sent* sent = call.local(call.workspace.sent);
  std::uint32_t* next_slot = m.role_counts();
  for (int e = m.team() * M::kLanes + m.lane(); e < p.experts; e += m.num_teams() * M::kLanes)
    next_slot[e] =
        CountAndMarks::of(m.claim(&sent[e], CountAndMarks{next_slot[e], 1}.word())).count;
  m.sync_role();

  for (std::int64_t pair = mine.begin; pair < mine.end; pair += mine.stride) {
    if (!is_valid_expert(ids[pair], p)) continue;
    const auto expert = static_cast<int>(ids[pair]);
    const int owner = p.rank_of(expert);
    const std::uint64_t place =
        source_index(p, expert - owner * p.experts_per_rank(), m.rank(), m.claim_slot(expert, 1U));
    m.store(call.peers.on(owner, call.workspace.source.at(place)),
            static_cast<std::uint32_t>(pair));
  }
  m.sync_role();
}

/// Step 4, leader only: what this rank has for each expert goes to the expert's rank, and a refusal
/// to every rank.
template <Machine M>
MEGAMOE_PROTOCOL void publish_counts(M& m, const Call& call) {
  const Problem& p = call.problem;
  const Workspace& w = call.workspace;
  const Sent* sent = call.local(w.sent);
  const int local_experts = p.experts_per_rank();
  for (int e = m.lane(); e < p.experts; e += M::kLanes) {
    const std::uint32_t rows = CountAndMarks::of(m.observe(&sent[e])).count;
    const int owner = p.rank_of(e);
    const int local = e - owner * local_experts;
    const int place = m.rank() * local_experts + local;
    m.store(call.peers.on(owner, w.received.at(static_cast<std::uint64_t>(place))), Received{rows});
    m.add(call.peers.on(owner, w.received_sum.at(static_cast<std::uint64_t>(local))),
          CountAndMarks{rows, 1}.word());
  }
  const Refusal refusal = refusal_of(call);
  if (refusal.kind == RefusalKind::kNone) return;
  for (int peer = m.lane(); peer < p.ranks; peer += M::kLanes)
    m.store(call.peers.on(peer, w.refusals.at(static_cast<std::uint64_t>(m.rank()))), refusal);
}

/// Leader only, between barrier 1 and its gate: the one refusal that all ranks report, and the rows
/// that the host may ask for.
template <Machine M>
MEGAMOE_PROTOCOL void conclude_routing(M& m, const Call& call) {
  const Workspace& w = call.workspace;
  const RowsOfExpert rows_of{call.local(w.received_sum)};
  for (int e = m.lane(); e < call.problem.experts_per_rank(); e += M::kLanes)
    call.local(w.expert_rows)[e] = static_cast<std::uint32_t>(rows_of(e));
  if (m.lane() != 0) return;
  Refusal verdict;
  for (int r = call.problem.ranks - 1; r >= 0; --r) {
    const Refusal& refusal = call.local(w.refusals)[r];
    if (refusal.kind != RefusalKind::kNone) verdict = refusal;
  }
  *call.local(w.verdict) = verdict;
  if (verdict.kind == RefusalKind::kNone) return;
  Refusal* kept = call.local(w.kept_refusal);
  if (kept->kind == RefusalKind::kNone) *kept = verdict;
}

}  // namespace megamoe
