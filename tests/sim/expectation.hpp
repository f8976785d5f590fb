#pragma once

#include <cstdint>
#include <vector>

#include "protocol/fault.hpp"
#include "sim/scenario.hpp"

namespace megamoe::sim {

/// A token's bytes: a hash of who brings it, and when.
std::uint8_t token_code(const Scenario& scenario, int call, int rank, int token, int byte);
std::uint8_t token_scale(const Scenario& scenario, int call, int rank, int token, int group);

/// One row's way through an expert: what linear 1 makes of its bytes and weight.
std::uint64_t row_tag(std::uint64_t content, float weight, int expert);
/// A hash of a row's bytes as they lie in a pool or an input.
std::uint64_t content_of(const std::uint8_t* codes, const std::uint8_t* scales, int hidden);
/// What linear 1 leaves in cell `n` of a row.
std::uint64_t cell_value(std::uint64_t tag, int n);
/// What settling a row makes of each of its cells: twice is not once, nor never.
std::uint64_t settled_cell(std::uint64_t cell);
/// What linear 2 makes of a row: bf16 of either sign and such that the order of a sum shows.
Bfloat16 slot_value(std::uint64_t tag, int channel);

/// What one call must do, worked out the obvious way from the whole scenario.
class Expectation {
 public:
  Expectation(const Scenario& scenario, int call);

  /// The refusal that all ranks must report.
  const Refusal& verdict() const { return verdict_; }
  bool is_refused() const { return verdict_.kind != RefusalKind::kNone; }
  /// Rows that `rank` has for the (global) expert; 0 from a rank that refuses.
  int received(int expert, int rank) const;
  int rows(int expert) const;
  /// The source rank of each of the expert's rows: while ranks have rows left, one row from each of
  /// them in turn.
  const std::vector<int>& order(int expert) const;
  /// The rank's pairs whose id is past the last expert.
  const std::vector<int>& bad_pairs(int rank) const {
    return bad_pairs_[static_cast<std::size_t>(rank)];
  }
  /// y of a rank, [tokens][hidden].
  std::vector<Bfloat16> output(int rank) const;
  bool is_row_of(int expert, SourceSlot slot) const;
  /// The tag that a valid pair's row must have.
  std::uint64_t tag(SourceSlot slot) const { return tags_[slot.rank][slot.pair]; }

 private:
  const RankInput& input(int rank) const;
  int live_tokens(int rank) const;
  bool is_valid(std::int64_t id) const;
  void count(int rank);
  std::uint64_t make_tag(int rank, int pair) const;

  const Scenario& scenario_;
  int call_;
  Refusal verdict_;
  std::vector<std::vector<int>> received_;        // [expert][rank]
  std::vector<std::vector<int>> order_;           // [expert][row]
  std::vector<std::vector<int>> bad_pairs_;       // [rank]
  std::vector<std::vector<std::uint64_t>> tags_;  // [rank][pair]
};

}  // namespace megamoe::sim
