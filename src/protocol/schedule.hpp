#pragma once

#include <cstdint>

#include "base/math.hpp"
#include "protocol/ring.hpp"

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

/// Walks one worker's blocks in wave order. A wave is a run of consecutive pool blocks: up to
/// `experts_per_wave` experts that have rows, and never more blocks than the ring has places, if
/// need be ending inside an expert; so every earlier lap of a place belongs to an earlier wave, and
/// no wait can close a circle. In a wave come all linear 1 blocks (expert, m, then n fastest), then
/// all linear 2 blocks; worker w takes every num_workers-th block of the whole sequence.
///
/// `RowsOf` answers rows_of(expert), the rows of a local expert; it is asked in order, several
/// times.
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
      : shape_(shape), rows_of_(rows_of), next_(shape.worker) {
    open_wave();
  }

  /// The worker's next block in `block`; false when it has had all of them.
  constexpr bool next(Block& block) {
    for (;;) {
      if (wave_blocks_ == 0) return false;
      const std::int64_t units = std::int64_t{wave_blocks_} * blocks_n();
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
             .pool = {first_pool_block_ + in_wave}};
    const int left = rows_of_(block.expert) - block.m * shape_.ring.block_m;
    block.rows = left < shape_.ring.block_m ? left : shape_.ring.block_m;
    next_ += shape_.num_workers;
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
    return phase_ == Phase::kLinear1 ? shape_.ring.linear1_blocks : shape_.ring.linear2_blocks;
  }
  constexpr int blocks_m(int expert) { return ceil_div(rows_of_(expert), shape_.ring.block_m); }

  /// Finds where the wave that starts at `begin_` ends.
  constexpr void open_wave() {
    wave_blocks_ = 0;
    Position at = begin_;
    int experts_with_rows = 0;
    while (at.expert < shape_.experts && experts_with_rows < shape_.experts_per_wave) {
      const int left = blocks_m(at.expert) - at.m;
      const int room = shape_.ring.blocks - wave_blocks_;
      if (left > room) {
        wave_blocks_ += room;
        at.m += room;
        break;
      }
      experts_with_rows += left > 0 ? 1 : 0;
      wave_blocks_ += left;
      ++at.expert;
      at.m = 0;
    }
    end_ = at;
    at_ = begin_;
  }

  constexpr void close_phase() {
    if (phase_ == Phase::kLinear1) {
      phase_ = Phase::kLinear2;
      at_ = begin_;
      return;
    }
    phase_ = Phase::kLinear1;
    first_pool_block_ += wave_blocks_;
    begin_ = {end_.expert, end_.m, 0};
    open_wave();
  }

  /// Moves `at_` to the expert that the wave's block number `in_wave` belongs to.
  constexpr void advance_to(int in_wave) {
    for (;;) {
      const int left = blocks_m(at_.expert) - at_.m;
      if (in_wave < at_.in_wave + left) return;
      at_ = {at_.expert + 1, 0, at_.in_wave + left};
    }
  }

  Shape shape_;
  RowsOf rows_of_;
  std::int64_t next_;  // the worker's next unit, counted from the start of the phase
  Phase phase_ = Phase::kLinear1;
  int first_pool_block_ = 0;  // of the wave
  int wave_blocks_ = 0;       // pool blocks of the wave
  Position begin_, end_, at_;
};

}  // namespace megamoe
