#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "megamoe/problem.hpp"
#include "numerics/bfloat16.hpp"
#include "protocol/counters.hpp"
#include "protocol/fault.hpp"
#include "protocol/symmetric.hpp"

namespace megamoe {

inline constexpr int kScaleGroup = 32;  ///< elements along K that share an activation's scale
inline constexpr int kPoolGranule =
    384;  ///< pool rows come in multiples of it: the candidates' least common multiple
inline constexpr int kSmallestBlockM = 8;  ///< ring counters are carved for the smallest candidate
inline constexpr int kLargestBlockM = 192;
inline constexpr std::uint64_t kRowAlignment =
    128;  ///< of every array that a bulk copy may read or write

/// Where a pool row came from.
struct SourceSlot {
  std::uint32_t rank;
  std::uint32_t pair;  ///< token * topk + k
};

/// How a machine lays out one row in the pool. The puller converts, so peers need not agree on it.
struct PoolFormat {
  std::uint32_t linear1_row_bytes = 0;
  std::uint32_t linear1_scale_bytes = 0;
  std::uint32_t linear2_row_bytes = 0;
  std::uint32_t linear2_scale_bytes = 0;

  bool operator==(const PoolFormat&) const = default;
};

/// Rows that suffice for every routing: R*C*K received rows, and up to a block's padding for each
/// local expert.
constexpr std::int64_t full_pool_rows(const Problem& p) {
  const std::int64_t received = std::int64_t{p.ranks} * p.pairs();
  return align_up<std::int64_t>(
      received + std::int64_t{p.experts_per_rank()} * (kLargestBlockM - 1), kPoolGranule);
}

/// The carve of a rank's symmetric memory: the only place that knows the order. Identical on all
/// ranks. Everything in front of `tokens` starts a rank's life as zero; the rest may hold anything.
struct Workspace {
  // Words that ranks and workers meet at.
  Sym<AbortWord> abort;
  Sym<Progress> progress;
  Sym<Gate> gate;
  Sym<WorkersArrived> workers_arrived;
  Sym<FaultClaims> fault_claims;
  Sym<BadIds> bad_ids;
  Sym<std::uint64_t> first_bad_pair;
  Sym<FaultRecord> fault;
  Sym<Refusal>
      verdict;  ///< the refusal that this call ends with, kNone mostly; the leader writes it
  Sym<Refusal> kept_refusal;       ///< the first verdict since the host took it: calls may end long
                                   ///< before anybody looks
  Sym<std::uint32_t> expert_rows;  ///< [experts_per_rank] rows of the last call, for the host; the
                                   ///< leader writes it
  Sym<RankArrival> arrival;        ///< [ranks] by source rank
  Sym<Refusal> refusals;           ///< [ranks] by source rank
  // Routing.
  Sym<Sent> sent;                 ///< [experts]
  Sym<Received> received;         ///< [ranks][experts_per_rank]
  Sym<ReceivedSum> received_sum;  ///< [experts_per_rank]
  // The ring, one word a ring block.
  Sym<ArrivedRows> arrived;
  Sym<ReadyBlocks> ready;
  Sym<FinishedBlocks> finished;
  std::uint64_t zeroed_bytes = 0;
  // What the caller brings. Peers read tokens, scales and weights.
  Sym<std::uint8_t> tokens;        ///< [capacity][hidden] E4M3
  Sym<std::uint8_t> token_scales;  ///< [capacity][hidden / 32] UE8M0
  Sym<float> topk_weights;         ///< [capacity][topk]
  Sym<std::int64_t> topk_ids;      ///< [capacity][topk]
  // Written by peers.
  Sym<std::uint32_t> source;  ///< [experts_per_rank][ranks][capacity * topk]: token * topk + k
  Sym<Bfloat16> combine;      ///< [topk][capacity][hidden]
  // The pool.
  Sym<SourceSlot> row_source;  ///< [pool_rows]
  Sym<float> row_weight;       ///< [pool_rows]
  Sym<std::byte> linear1_rows, linear1_scales, linear2_rows,
      linear2_scales;  ///< [pool_rows][format]
  std::uint64_t bytes = 0;

  PoolFormat format;
  std::int64_t pool_rows = 0;

  static constexpr Workspace plan(const Problem& p,
                                  const PoolFormat& format,
                                  std::int64_t pool_rows);
};

constexpr Workspace Workspace::plan(const Problem& p,
                                    const PoolFormat& format,
                                    std::int64_t pool_rows) {
  const auto ranks = static_cast<std::uint64_t>(p.ranks);
  const auto local_experts = static_cast<std::uint64_t>(p.experts_per_rank());
  const auto pairs = static_cast<std::uint64_t>(p.pairs());
  const auto capacity = static_cast<std::uint64_t>(p.capacity);
  const auto hidden = static_cast<std::uint64_t>(p.hidden);
  const auto rows = static_cast<std::uint64_t>(pool_rows);
  const std::uint64_t ring_blocks = rows / kSmallestBlockM;
  constexpr std::uint64_t kLine = 128;  // words with different writers don't share a cache line

  Carver carve;
  Workspace w;
  w.abort = carve.take<AbortWord>(1, kLine);
  w.progress = carve.take<Progress>(1, kLine);
  w.gate = carve.take<Gate>(1, kLine);
  w.workers_arrived = carve.take<WorkersArrived>(1, kLine);
  w.fault_claims = carve.take<FaultClaims>(1, kLine);
  w.bad_ids = carve.take<BadIds>(1);
  w.first_bad_pair = carve.take<std::uint64_t>(1);
  w.fault = carve.take<FaultRecord>(1, kLine);
  w.verdict = carve.take<Refusal>(1, kLine);
  w.kept_refusal = carve.take<Refusal>(1);
  w.expert_rows = carve.take<std::uint32_t>(local_experts, kLine);
  w.arrival = carve.take<RankArrival>(ranks, kLine);
  w.refusals = carve.take<Refusal>(ranks, kLine);
  w.sent = carve.take<Sent>(static_cast<std::uint64_t>(p.experts), kLine);
  w.received = carve.take<Received>(ranks * local_experts, kLine);
  w.received_sum = carve.take<ReceivedSum>(local_experts, kLine);
  w.arrived = carve.take<ArrivedRows>(ring_blocks, kLine);
  w.ready = carve.take<ReadyBlocks>(ring_blocks, kLine);
  w.finished = carve.take<FinishedBlocks>(ring_blocks, kLine);
  w.zeroed_bytes = carve.size();
  w.tokens = carve.take<std::uint8_t>(capacity * hidden, kRowAlignment);
  w.token_scales = carve.take<std::uint8_t>(capacity * hidden / kScaleGroup, kRowAlignment);
  w.topk_weights = carve.take<float>(pairs, kRowAlignment);
  w.topk_ids = carve.take<std::int64_t>(pairs, kRowAlignment);
  w.source = carve.take<std::uint32_t>(local_experts * ranks * pairs, kRowAlignment);
  w.combine = carve.take<Bfloat16>(pairs * hidden, kRowAlignment);
  w.row_source = carve.take<SourceSlot>(rows, kRowAlignment);
  w.row_weight = carve.take<float>(rows, kRowAlignment);
  w.linear1_rows = carve.take<std::byte>(rows * format.linear1_row_bytes, kRowAlignment);
  w.linear1_scales = carve.take<std::byte>(rows * format.linear1_scale_bytes, kRowAlignment);
  w.linear2_rows = carve.take<std::byte>(rows * format.linear2_row_bytes, kRowAlignment);
  w.linear2_scales = carve.take<std::byte>(rows * format.linear2_scale_bytes, kRowAlignment);
  w.bytes = align_up(carve.size(), std::uint64_t{4096});
  w.format = format;
  w.pool_rows = pool_rows;
  return w;
}

/// A named stretch of the workspace.
struct WorkspaceItem {
  std::string_view name;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;  ///< up to the next item, so that the items' sum is the workspace
};

/// What the workspace consists of, in the order of the carve, whose offsets it reads.
constexpr std::array<WorkspaceItem, 16> items(const Workspace& w) {
  const std::uint64_t last_bytes =
      static_cast<std::uint64_t>(w.pool_rows) * w.format.linear2_scale_bytes;
  std::array<WorkspaceItem, 16> all = {{
      {"control", w.abort.offset},  // all words up to the refusals
      {"counts", w.sent.offset},
      {"ring", w.arrived.offset},
      {"tokens", w.tokens.offset},
      {"token_scales", w.token_scales.offset},
      {"topk_weights", w.topk_weights.offset},
      {"topk_ids", w.topk_ids.offset},
      {"source", w.source.offset},
      {"combine", w.combine.offset},
      {"row_source", w.row_source.offset},
      {"row_weight", w.row_weight.offset},
      {"linear1_rows", w.linear1_rows.offset},
      {"linear1_scales", w.linear1_scales.offset},
      {"linear2_rows", w.linear2_rows.offset},
      {"linear2_scales", w.linear2_scales.offset},
      {"page_rounding", w.linear2_scales.at(last_bytes).offset},
  }};
  std::uint64_t end = w.bytes;
  for (std::size_t i = all.size(); i-- > 0;) {
    all[i].bytes = end - all[i].begin;
    end = all[i].begin;
  }
  return all;
}

}  // namespace megamoe
