#pragma once

#include <cstdint>

#include "machine/cuda/pull_rows.cuh"
#include "machine/sm90/kernel_args.hpp"
#include "machine/sm90/row_store.cuh"

namespace megamoe::sm90 {

// Pulls, and the same way again for linear 2's input: from where linear 1 left a row in the pool,
// through shared memory, into the tiles that linear 2 reads (settle.hpp).
template <Plan kPlan>
class RowPulls : public gpu::RowPulls<RowStore<kPlan>, kPullsInFlight> {
 public:
  using gpu::RowPulls<RowStore<kPlan>, kPullsInFlight>::RowPulls;

  // The row's codes and scales lie in the pool and are visible to this team.
  MEGAMOE_DEVICE void begin_settle(const Call& call, std::int64_t pool_row, int lane) {
    if (lane == 0) {
      const int depth = call.problem.intermediate;
      const auto* from = reinterpret_cast<const std::uint8_t*>(
          call.local(activation_row(call, kPlan.operands, pool_row)));
      std::byte* tiles = call.local(linear2_tiles(call, kPlan.operands, pool_row));
      std::byte* exponent =
          call.local(call.workspace.linear2_scales) + pool_row * sizeof(std::int32_t);
      // They were written by plain stores.
      ptx::fence_proxy_async();
      this->take_off(call, depth)
          .start({from, from + ActivationRow{depth}.scales()}, {tiles, nullptr, exponent, 0, 0}, 0);
    }
    this->advance_next();
  }

  MEGAMOE_DEVICE void finish_settle(const Call& call, int lane) {
    const int depth = call.problem.intermediate;
    const auto row = this->land(call, depth);
    const PullRecord record = row.record();
    RowStore<kPlan>::store(row.view(record),
                           record,
                           call.local(call.workspace.linear2_rows),
                           static_cast<std::uint32_t>(pool_row_bytes(kPlan.operands, depth)),
                           lane);
    this->publish();
  }
};

}  // namespace megamoe::sm90
