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
/// m, then n fastest), then all linear 2 blocks; worker w takes every num_workers-th block of the
/// whole sequence.
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
        next_(shape.worker) {
    restart();
  }

  /// The worker's next block in `block`; false when it has had all of them.
  constexpr bool next(Block& block) {
    for (;;) {
      if (waves_.is_over()) return false;
      const std::int64_t units = std::int64_t{waves_.blocks()} * blocks_n();
      if (next_ < units) break;
      next_ -= units;
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
    next_ += num_workers_;
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

  /// To the wave's first block.
  constexpr void restart() { at_ = {waves_.begin().expert, waves_.begin().m, 0}; }

  constexpr void close_phase() {
    const bool ends_wave = phase_ == Phase::kLinear2;
    phase_ = ends_wave ? Phase::kLinear1 : Phase::kLinear2;
    if (ends_wave) waves_.advance();
    restart();
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
  std::int64_t next_;  // the worker's next unit, counted from the start of the phase
  Phase phase_ = Phase::kLinear1;
  Position at_;
};

}  // namespace megamoe
