#pragma once

#include <cstdint>

#include "base/math.hpp"
#include "protocol/ring.hpp"

namespace megamoe {

/// The rows of one expert that a wave has, numbered from 0.
struct WaveRows {
  int expert = 0;
  int before = 0;  ///< rows of the expert in earlier waves, a multiple of block_m
  int count = 0;
  bool is_rest = true;  ///< none of the expert's rows come later
  PoolBlock first_block;

  constexpr bool is_last(int row) const { return is_rest && row == count - 1; }
  constexpr PoolBlock block(int row, int block_m) const {
    return {first_block.index + row / block_m};
  }
};

/// The waves of a call: runs of consecutive pool blocks, up to `experts_per_wave` experts that have
/// rows, and never more blocks than the ring has places, if need be ending inside an expert; so
/// every earlier lap of a place belongs to an earlier wave, and no wait can close a circle.
///
/// `RowsOf` answers rows_of(expert), the rows of a local expert; it is asked in order, several
/// times.
template <class RowsOf>
class Waves {
 public:
  /// Block `m` of a local expert's rows.
  struct Position {
    int expert = 0;
    int m = 0;
  };
  struct Shape {
    Ring ring;
    int experts = 1;  ///< local experts
    int experts_per_wave = 1;
  };

  constexpr Waves(const Shape& shape, RowsOf rows_of) : shape_(shape), rows_of_(rows_of) { open(); }

  /// True when there are no more waves.
  constexpr bool is_over() const { return blocks_ == 0; }
  constexpr void advance() {
    first_block_ += blocks_;
    begin_ = end_;
    open();
  }

  constexpr PoolBlock first_block() const { return {first_block_}; }
  constexpr int blocks() const { return blocks_; }
  constexpr Position begin() const { return begin_; }
  /// The block after its last: one of the wave's last expert, or block 0 of the expert after it.
  constexpr Position end() const { return end_; }
  constexpr int rows_of(int expert) { return rows_of_(expert); }
  constexpr int blocks_of(int expert) { return ceil_div(rows_of_(expert), shape_.ring.block_m); }
  constexpr const Ring& ring() const { return shape_.ring; }

  /// Calls visit(rows) for each expert of the wave, until one returns false.
  template <class Visit>
  constexpr bool for_each_expert(Visit visit) {
    const int block_m = shape_.ring.block_m;
    PoolBlock block{first_block_};
    for (int expert = begin_.expert; expert < end_.expert || end_.m > 0; ++expert) {
      const bool is_cut = expert == end_.expert;
      const int before = expert == begin_.expert ? begin_.m * block_m : 0;
      const int count = (is_cut ? end_.m * block_m : rows_of_(expert)) - before;
      if (!visit(WaveRows{expert, before, count, !is_cut, block})) return false;
      if (is_cut) break;
      block.index += ceil_div(count, block_m);
    }
    return true;
  }

 private:
  /// Finds where the wave that starts at `begin_` ends.
  constexpr void open() {
    blocks_ = 0;
    Position at = begin_;
    int experts_with_rows = 0;
    while (at.expert < shape_.experts && experts_with_rows < shape_.experts_per_wave) {
      const int left = blocks_of(at.expert) - at.m;
      const int room = shape_.ring.blocks - blocks_;
      if (left > room) {
        blocks_ += room;
        at.m += room;
        break;
      }
      experts_with_rows += left > 0 ? 1 : 0;
      blocks_ += left;
      at = {at.expert + 1, 0};
    }
    end_ = at;
  }

  Shape shape_;
  RowsOf rows_of_;
  int first_block_ = 0;
  int blocks_ = 0;
  Position begin_, end_;
};

}  // namespace megamoe
