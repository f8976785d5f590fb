#pragma once

#include <cstdint>

#include "numerics/bfloat16.hpp"
#include "protocol/call.hpp"
#include "protocol/machine.hpp"
#include "protocol/route.hpp"

namespace megamoe {

/// What one lane moves at a time: 16 bytes.
struct alignas(16) Bfloat16x8 {
  static constexpr int kWidth = 8;
  Bfloat16 values[kWidth];
};

/// The fixed-order sum of a token's slots: from +0, k ascending, in fp32, rounded once.
struct SlotSum {
  float values[Bfloat16x8::kWidth] = {};

  constexpr void add(const Bfloat16x8& slot) {
    for (int i = 0; i < Bfloat16x8::kWidth; ++i)
      values[i] += to_float(slot.values[i]);
  }
  constexpr Bfloat16x8 rounded() const {
    Bfloat16x8 row{};
    for (int i = 0; i < Bfloat16x8::kWidth; ++i)
      row.values[i] = to_bfloat16(values[i]);
    return row;
  }
};

/// Bit k: the token's k-slot names an expert.
constexpr std::uint32_t valid_slots(const std::int64_t* ids, const Problem& problem) {
  std::uint32_t mask = 0;
  for (int k = 0; k < problem.topk; ++k)
    if (is_valid_expert(ids[k], problem)) mask |= std::uint32_t{1} << k;
  return mask;
}

/// Into how many parts the teams cut a token's channels: more than one only while there are more
/// teams than tokens, and never narrower than a team.
constexpr int parts_of_token(int tokens, int teams, int team_widths) {
  const int wanted = tokens == 0 ? 1 : teams / tokens;
  const int most = wanted < team_widths ? wanted : team_widths;
  return most < 1 ? 1 : most;
}
static_assert(parts_of_token(8, 132, 28) == 16 && parts_of_token(1, 132, 28) == 28);
static_assert(parts_of_token(200, 132, 28) == 1 && parts_of_token(0, 132, 28) == 1);

/// The sum of one pack over a token's valid slots. A few slots are read before the first is added,
/// so that their latencies overlap; the order of the additions is that of k.
template <class At>
MEGAMOE_PROTOCOL Bfloat16x8 slot_sum(std::uint32_t valid, int topk, At slot_at) {
  constexpr int kAtOnce = 4;
  SlotSum sum;
  for (int first = 0; first < topk; first += kAtOnce) {
    Bfloat16x8 slots[kAtOnce] = {};
    MEGAMOE_UNROLL
    for (int i = 0; i < kAtOnce; ++i)
      if (((valid >> (first + i)) & 1U) != 0) slots[i] = slot_at(first + i);
    MEGAMOE_UNROLL
    for (int i = 0; i < kAtOnce; ++i)
      if (((valid >> (first + i)) & 1U) != 0) sum.add(slots[i]);
  }
  return sum.rounded();
}

/// A team's tokens between two signs of life: few enough for a slow one not to be taken for dead,
/// and more than a short call has.
inline constexpr int kTokensPerProgress = 64;

/// Step 9 for one team, after barrier 2: its share of this rank's tokens.
template <Machine M>
MEGAMOE_PROTOCOL void combine(M& m, const Call& call) {
  const Problem& p = call.problem;
  const int packs = p.hidden / Bfloat16x8::kWidth;
  const auto* slots = reinterpret_cast<const Bfloat16x8*>(call.local(call.workspace.combine));
  auto* output = reinterpret_cast<Bfloat16x8*>(call.output);
  const std::int64_t slot_stride = std::int64_t{p.capacity} * packs;
  const int tokens = live_tokens(call);
  const int teams = m.num_workers() * m.num_teams();
  const int parts = parts_of_token(tokens, teams, ceil_div(packs, int{M::kLanes}));
  int done = 0;
  for (int unit = m.team() * m.num_workers() + m.worker(); unit < tokens * parts; unit += teams) {
    const int token = unit / parts;
    const int part = unit % parts;
    const std::int64_t* ids = call.local(call.workspace.topk_ids) + std::int64_t{token} * p.topk;
    const std::uint32_t valid = valid_slots(ids, p);
    const std::int64_t row = std::int64_t{token} * packs;
    for (int pack = part * M::kLanes + m.lane(); pack < packs; pack += parts * M::kLanes)
      output[row + pack] =
          slot_sum(valid, p.topk, [&](int k) { return slots[k * slot_stride + row + pack]; });
    if (++done % kTokensPerProgress == 0 && m.lane() == 0) m.bump_progress();
  }
}

}  // namespace megamoe
