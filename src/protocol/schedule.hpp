#pragma once

#include <cstdint>

#include "protocol/waves.hpp"

namespace megamoe {

enum class Phase : std::uint8_t { kLinear1, kLinear2 };

/// One unit of work.
struct Block {
  Phase phase = Phase::kLinear1;
  int expert = 0;  ///< local expert
  int m = 0;       ///< block of the expert's rows
  int n = 0;       ///< block of output channels
  int rows = 0;    ///< valid rows, 1..block_m
  PoolBlock pool;
};

/// Walks one worker's blocks in wave order (waves.hpp). In a wave come all linear 1 blocks (expert,
/// m, then n fastest), then all linear 2 blocks. They are dealt to the workers in turn, and the
/// deal goes on where it stopped. One thing makes up for linear 1 blocks that cost more: workers
/// that had one less than others, the early ones, are first dealt linear2_lead blocks each of
/// linear 2.
template <class RowsOf>
class Schedule {
 public:
  struct Shape {
    Ring ring;
    int experts = 1;  ///< local experts
    int experts_per_wave = 1;
    int worker = 0;
    int num_workers = 1;
  };

  constexpr Schedule(const Shape& shape, RowsOf rows_of)
      : waves_({shape.ring, shape.experts, shape.experts_per_wave}, rows_of),
        num_workers_(shape.num_workers),
        place_(shape.worker),
        next_(shape.worker) {
    restart();
  }

  /// The worker's next block in `block`; false when it has had all of them.
  constexpr bool next(Block& block) {
    for (;;) {
      if (waves_.is_over()) return false;
      if (next_ < units()) break;
      close_phase();
    }
    const auto in_wave = static_cast<int>(next_ / blocks_n());
    advance_to(in_wave);
    block = {.phase = phase_,
             .expert = at_.expert,
             .m = at_.m + (in_wave - at_.in_wave),
             .n = static_cast<int>(next_ % blocks_n()),
             .rows = 0,
             .pool = {waves_.first_block().index + in_wave}};
    const int block_m = waves_.ring().block_m;
    const int left = waves_.rows_of(block.expert) - block.m * block_m;
    block.rows = left < block_m ? left : block_m;
    step();
    return true;
  }

 private:
  /// A place in the walk: block `m` of `expert` is the wave's block number `in_wave`.
  struct Position {
    int expert = 0;
    int m = 0;
    int in_wave = 0;
  };

  constexpr int blocks_n() const {
    return phase_ == Phase::kLinear1 ? waves_.ring().linear1_blocks : waves_.ring().linear2_blocks;
  }
  /// Blocks of the phase.
  constexpr std::int64_t units() const { return std::int64_t{waves_.blocks()} * blocks_n(); }
  /// Blocks of the phase that the early workers are dealt first.
  constexpr std::int64_t lead_units() const {
    return phase_ == Phase::kLinear1 ? 0 : std::int64_t{waves_.ring().linear2_lead} * early_;
  }

  /// To the wave's first block.
  constexpr void restart() { at_ = {waves_.begin().expert, waves_.begin().m, 0}; }

  /// From the worker's unit of the phase to its next one.
  constexpr void step() {
    if (rounds_of_lead_ == 0)
      next_ += num_workers_;
    else if (--rounds_of_lead_ > 0)
      next_ += early_;
    else
      next_ = lead_units() + place_;
  }

  /// Who would be dealt the phase's next unit is first in the phase after it.
  constexpr void close_phase() {
    const std::int64_t past_lead = units() - lead_units();
    // Without its whole lead there are early workers.
    const std::int64_t dealt = past_lead >= 0 ? past_lead % num_workers_ : units() % early_;
    place_ -= static_cast<int>(dealt);
    if (place_ < 0) place_ += num_workers_;
    const bool ends_wave = phase_ == Phase::kLinear2;
    // With less than a round of linear 1, linear 2 has nothing to begin with before that is done.
    const bool can_lead = units() >= num_workers_;
    phase_ = ends_wave ? Phase::kLinear1 : Phase::kLinear2;
    if (ends_wave) waves_.advance();
    restart();
    early_ = !ends_wave && can_lead ? num_workers_ - static_cast<int>(dealt) : 0;
    const bool has_lead = !ends_wave && place_ < early_ && waves_.ring().linear2_lead > 0;
    rounds_of_lead_ = has_lead ? waves_.ring().linear2_lead : 0;
    next_ = has_lead ? place_ : lead_units() + place_;
  }

  /// Moves `at_` to the expert that the wave's block number `in_wave` belongs to.
  constexpr void advance_to(int in_wave) {
    for (;;) {
      const int left = waves_.blocks_of(at_.expert) - at_.m;
      if (in_wave < at_.in_wave + left) return;
      at_ = {at_.expert + 1, 0, at_.in_wave + left};
    }
  }

  Waves<RowsOf> waves_;
  int num_workers_;
  int place_;               // the worker's turn in the phase's deal
  int early_ = 0;           // workers that had one linear 1 block less than the others, or all
  int rounds_of_lead_ = 0;  // that the worker has left
  std::int64_t next_;       // the worker's next unit, counted from the start of the phase
  Phase phase_ = Phase::kLinear1;
  Position at_;
};

}  // namespace megamoe
