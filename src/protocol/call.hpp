#pragma once

#include <cstdint>

#include "base/math.hpp"
#include "base/portable.hpp"
#include "megamoe/problem.hpp"
#include "protocol/counters.hpp"
#include "protocol/ring.hpp"
#include "protocol/schedule.hpp"
#include "protocol/symmetric.hpp"
#include "protocol/workspace.hpp"

namespace megamoe {

/// One call of one rank, as every role of every worker sees it. Trivially copyable: on a GPU it
/// travels as the kernel's argument.
struct Call {
  Problem problem;
  Peers peers;
  Workspace workspace;
  Ring ring;
  int experts_per_wave = 1;
  /// Read on the machine, so that a replayed graph sees new values; null: `fixed_tokens` holds.
  const std::int32_t* num_tokens = nullptr;
  std::int32_t fixed_tokens = 0;
  Refusal refusal;             ///< set when the host refuses this rank's input
  Bfloat16* output = nullptr;  ///< y, [tokens][hidden]

  template <class T>
  constexpr T* local(Sym<T> place) const {
    return peers.local(place);
  }
};
static_assert(std::is_trivially_copyable_v<Call>);

/// Tokens that this rank was told to bring, whether it can or not.
constexpr std::int32_t asked_tokens(const Call& call) {
  return call.num_tokens == nullptr ? call.fixed_tokens : *call.num_tokens;
}

/// This rank's refusal, whether the host or the token count says so.
constexpr Refusal refusal_of(const Call& call) {
  if (call.refusal.kind != RefusalKind::kNone) return call.refusal;
  const std::int32_t tokens = asked_tokens(call);
  if (tokens >= 0 && tokens <= call.problem.capacity) return {};
  return {RefusalKind::kTooManyTokens, call.peers.rank, tokens, 0, 0};
}

/// Tokens that this rank brings: none when it refuses its input.
constexpr int live_tokens(const Call& call) {
  return refusal_of(call).kind == RefusalKind::kNone ? asked_tokens(call) : 0;
}

/// True when some rank refused its input; known to all roles once barrier 1's gate is open.
constexpr bool call_is_refused(const Call& call) {
  return call.local(call.workspace.verdict)->kind != RefusalKind::kNone;
}

/// Rows of a local expert, once barrier 1's gate is open: what Schedule asks for.
struct RowsOfExpert {
  const ReceivedSum* sums;

  constexpr int operator()(int expert) const {
    return static_cast<int>(CountAndMarks::of(sums[expert].value).count);
  }
};

constexpr Waves<RowsOfExpert> waves_of(const Call& call) {
  return {{call.ring, call.problem.experts_per_rank(), call.experts_per_wave},
          RowsOfExpert{call.local(call.workspace.received_sum)}};
}

constexpr Schedule<RowsOfExpert> schedule_of(const Call& call, int worker, int num_workers) {
  return {{.ring = call.ring,
           .experts = call.problem.experts_per_rank(),
           .experts_per_wave = call.experts_per_wave,
           .worker = worker,
           .num_workers = num_workers},
          RowsOfExpert{call.local(call.workspace.received_sum)}};
}

/// The row of a peer's combine buffer that belongs to one (token, k): written by exactly one
/// expert, summed in order of k.
constexpr Remote<Bfloat16> combine_row(const Call& call, SourceSlot slot) {
  const auto topk = static_cast<std::uint32_t>(call.problem.topk);
  const std::uint64_t token = slot.pair / topk;
  const std::uint64_t k = slot.pair % topk;
  const std::uint64_t row = k * static_cast<std::uint64_t>(call.problem.capacity) + token;
  return call.peers.on(static_cast<int>(slot.rank), call.workspace.combine)
      .at(row * static_cast<std::uint64_t>(call.problem.hidden));
}

}  // namespace megamoe
