#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "random_layer.hpp"
#include "reference/compare.hpp"
#include "reference/layer_reference.hpp"
#include "stage_reference.hpp"

namespace megamoe::test {

inline TokenView view_of(const RandomInput& input) {
  return {input.tokens,
          input.codes.data(),
          input.scales.data(),
          input.ids.data(),
          input.weights.data()};
}

// What Hopper's two modes may differ by from the whole layer in fp64.
inline Tolerance tolerance_of(sm90::Operands operands) {
  if (operands == sm90::Operands::kFloat8) return kRegroupedTolerance;
  return {.relative_l2 = 0.001, .cell_factor = 1};
}

// Every row judged by itself: large rows must not speak for small ones, nor be held to their size.
struct RowDistances {
  Distance all;  // each row at the weight of one
  double worst = 0;
  int worst_token = -1;
  std::int64_t cells_beyond_bound = 0;  // compare()'s bound, with the row's own rms
};

// Of cells that are finite in the reference; the others are compare()'s.
inline RowDistances row_distances(const std::vector<Bfloat16>& got,
                                  const ReferenceOutput& wanted,
                                  int hidden,
                                  const Tolerance& tolerance) {
  RowDistances result;
  const auto width = static_cast<std::size_t>(hidden);
  for (std::size_t first = 0; first < got.size(); first += width) {
    Distance row;
    const auto for_cells = [&](auto body) {
      for (std::size_t at = first; at < first + width; ++at) {
        const auto value = static_cast<double>(to_float(wanted.y[at]));
        if (std::isfinite(value)) body(at, static_cast<double>(to_float(got[at])), value);
      }
    };
    for_cells([&](std::size_t, double cell, double value) { row.add(cell, value); });
    const double rms = std::sqrt(row.size / hidden);
    for_cells([&](std::size_t at, double cell, double value) {
      const double bound = 0x1p-7 * static_cast<double>(wanted.slot_magnitude[at]) + 0.03 * rms;
      // A NaN is beyond every bound.
      result.cells_beyond_bound += !(std::fabs(cell - value) <= tolerance.cell_factor * bound);
    });
    if (row.size == 0 && row.error == 0) continue;
    result.all.add_row(row);
    if (row.relative() <= result.worst) continue;
    result.worst = row.relative();
    result.worst_token = static_cast<int>(first / width);
  }
  return result;
}

inline bool same_bits(const std::vector<Bfloat16>& a, const std::vector<Bfloat16>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Bfloat16)) == 0);
}

}  // namespace megamoe::test
