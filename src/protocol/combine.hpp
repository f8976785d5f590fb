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

/// Step 9 for one team: every combiners-th token of this rank, after barrier 2.
template <Machine M>
MEGAMOE_PROTOCOL void combine(M& m, const Call& call) {
  const Problem& p = call.problem;
  const int packs = p.hidden / Bfloat16x8::kWidth;
  const auto* slots = reinterpret_cast<const Bfloat16x8*>(call.local(call.workspace.combine));
  auto* output = reinterpret_cast<Bfloat16x8*>(call.output);
  const std::int64_t slot_stride = std::int64_t{p.capacity} * packs;
  const int tokens = live_tokens(call);
  for (int token = m.team() * m.num_workers() + m.worker(); token < tokens;
       token += m.num_workers() * m.num_teams()) {
    const std::int64_t* ids = call.local(call.workspace.topk_ids) + std::int64_t{token} * p.topk;
    const std::uint32_t valid = valid_slots(ids, p);
    const std::int64_t row = std::int64_t{token} * packs;
    for (int pack = m.lane(); pack < packs; pack += M::kLanes) {
      SlotSum sum;
      for (int k = 0; k < p.topk; ++k)
        if (((valid >> k) & 1U) != 0) sum.add(slots[k * slot_stride + row + pack]);
      output[row + pack] = sum.rounded();
    }
  }
}

}  // namespace megamoe
