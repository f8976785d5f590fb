#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/math.hpp"
#include "megamoe/plan.hpp"
#include "plan/rules.hpp"
#include "protocol/workspace.hpp"

namespace megamoe {

/// How a machine lays out pool rows; its own affair, so the machine brings it.
using PoolFormatOf = PoolFormat (*)(const Problem&);

/// A kernel that is built for a height of tile, with a problem's share of its shared memory.
struct BuiltKernel {
  KernelPlan kernel;                   ///< all of it but the widths of blocks
  std::vector<PlanItem> shared_items;  ///< sum up to kernel.shared_bytes
  std::string_view why;                ///< its warps are as they are; static storage
};
/// The machine's own numbers, of one of its heights.
using BuiltKernelOf = BuiltKernel (*)(const Problem&, int block_m);

/// What a machine allows. A value; a caller who knows better (a device with less memory, a tuned
/// table) changes a field.
struct Limits {
  MachineKind machine = MachineKind::kCpu;
  int workers = 1;          ///< that run at the same time, for certain
  int shared_bytes = 0;     ///< that a CTA may ask for
  int hidden_granule = 32;  ///< H and I are padded to multiples of these, in the weights
  int intermediate_granule = 32;
  std::uint64_t symmetric_bytes = kNoBudget;  ///< the most of a rank, whatever the caller asks
  std::uint64_t pool_bytes = kNoBudget;  ///< a pool beyond it gains nothing: what is not asked for
  PoolFormatOf pool_format = nullptr;
  std::span<const TileRule> tiles = {};
  std::span<const ChannelRule> channels = {};
  bool one_wave = false;          ///< linear 1 of all experts that the ring holds comes first
  BuiltKernelOf built = nullptr;  ///< null on the CPU

  constexpr int padded_hidden(const Problem& p) const { return align_up(p.hidden, hidden_granule); }
  constexpr int padded_intermediate(const Problem& p) const {
    return align_up(p.intermediate, intermediate_granule);
  }
};

/// `workers` pairs of threads of this process. Its symmetric memory is the computer's, which this
/// function does not look at: symmetric_bytes is kNoBudget.
Limits cpu_limits(int workers, PoolFormatOf pool_format);

}  // namespace megamoe
