#pragma once

#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "protocol/blocks.hpp"
#include "protocol/call.hpp"
#include "sim/expectation.hpp"

namespace megamoe::sim {

/// A compute role that is cheap and exact: linear 1 checks every row's bytes, weight and origin and
/// makes a tag of them, one cell an N-block; linear 2 checks all cells of a row (settled ones,
/// where the ring says so) and pushes bf16 values made from the tag. What arrives in y says where
/// it came from. For any machine; `fail(sentence)` takes what is wrong.
template <class M, class Fail>
class TaggedLayer {
 public:
  TaggedLayer(M& m, const Call& call, const Expectation& expectation, Fail fail)
      : m_(m), call_(call), expectation_(expectation), fail_(fail) {}

  void compute(const Block& block) {
    if (block.phase == Phase::kLinear1)
      linear1(block);
    else
      linear2(block);
  }

 private:
  int expert(const Block& block) const {
    return call_.peers.rank * call_.problem.experts_per_rank() + block.expert;
  }
  Remote<std::uint64_t> cell(std::int64_t row, int n) const {
    const Workspace& w = call_.workspace;
    std::byte* cells = call_.local(
        w.linear2_rows.at(static_cast<std::uint64_t>(row) * w.format.linear2_row_bytes));
    return Remote<std::uint64_t>(reinterpret_cast<std::uint64_t*>(cells) + n);
  }

  /// The tag that the row must have; 0 after saying that its origin is none.
  std::uint64_t expected_tag(const Block& block, std::int64_t row) {
    const SourceSlot slot = call_.local(call_.workspace.row_source)[row];
    if (expectation_.is_row_of(expert(block), slot)) return expectation_.tag(slot);
    fail_(sentence("rank ",
                   call_.peers.rank,
                   ": a row of expert ",
                   expert(block),
                   " says that it is pair ",
                   slot.pair,
                   " of rank ",
                   slot.rank));
    return 0;
  }

  void linear1(const Block& block) {
    const Workspace& w = call_.workspace;
    const int lanes = M::kLanes * m_.num_teams();
    for (int i = m_.team() * M::kLanes + m_.lane(); i < block.rows; i += lanes) {
      const std::int64_t row = call_.ring.row(block.pool, i);
      const auto index = static_cast<std::uint64_t>(row);
      const std::uint64_t tag = row_tag(
          content_of(reinterpret_cast<const std::uint8_t*>(
                         call_.local(w.linear1_rows.at(index * w.format.linear1_row_bytes))),
                     reinterpret_cast<const std::uint8_t*>(
                         call_.local(w.linear1_scales.at(index * w.format.linear1_scale_bytes))),
                     call_.problem.hidden),
          call_.local(w.row_weight)[row],
          expert(block));
      if (tag != expected_tag(block, row))
        fail_(sentence("rank ",
                       call_.peers.rank,
                       ": linear 1 reads wrong bytes in row ",
                       i,
                       " of pool block ",
                       block.pool.index));
      m_.store(cell(row, block.n), cell_value(tag, block.n));
    }
  }

  /// What a cell is, where linear 1 left `fresh`.
  static std::string_view name_of(std::uint64_t cell, std::uint64_t fresh) {
    if (cell == fresh) return "an unsettled";
    if (cell == settled_cell(fresh)) return "a settled";
    if (cell == settled_cell(settled_cell(fresh))) return "a twice settled";
    return "a wrong";
  }

  void check_cells(const Block& block, int row_in_block, std::uint64_t tag) {
    const std::int64_t row = call_.ring.row(block.pool, row_in_block);
    for (int n = 0; n < call_.ring.linear1_blocks; ++n) {
      const std::uint64_t fresh = cell_value(tag, n);
      const std::uint64_t found = *cell(row, n).raw();
      if (found == (call_.ring.settled_rows > 0 ? settled_cell(fresh) : fresh)) continue;
      fail_(sentence("rank ",
                     call_.peers.rank,
                     ": linear 2 reads ",
                     name_of(found, fresh),
                     " cell ",
                     n,
                     " in row ",
                     row_in_block,
                     " of pool block ",
                     block.pool.index));
    }
  }

  void linear2(const Block& block) {
    const int channels = call_.problem.hidden / call_.ring.linear2_blocks;
    std::vector<Bfloat16> values(static_cast<std::size_t>(channels));
    for (int i = m_.team(); i < block.rows; i += m_.num_teams()) {
      const std::int64_t row = call_.ring.row(block.pool, i);
      const std::uint64_t tag = expected_tag(block, row);
      check_cells(block, i, tag);
      for (int c = 0; c < channels; ++c)
        values[static_cast<std::size_t>(c)] = slot_value(tag, block.n * channels + c);
      push_row(m_, call_, row, block.n * channels, values.data(), channels);
    }
  }

  M& m_;
  const Call& call_;
  const Expectation& expectation_;
  Fail fail_;
};

}  // namespace megamoe::sim
