#include "reference/compare.hpp"

#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace megamoe {
namespace {

constexpr double kSlotShare = 0x1p-7;  // a few roundings of each slot to bf16
constexpr double kRmsShare = 0.03;     // code flips upstream, spread over a row

double rms_of_finite(std::span<const Bfloat16> values) {
  double squares = 0;
  std::int64_t count = 0;
  for (const Bfloat16 value : values) {
    const double wide = to_float(value);
    if (!std::isfinite(wide)) continue;
    squares += wide * wide;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

double ratio(double part, double whole) {
  if (part == 0) return 0;
  return whole == 0 ? std::numeric_limits<double>::infinity() : part / whole;
}

std::string place(const ComparedCell& cell) {
  return sentence(
      "token ", cell.token, ", column ", cell.column, ": ", cell.got, " against ", cell.wanted);
}

}  // namespace

bool Comparison::agrees() const {
  return relative_l2 <= tolerance.relative_l2 && cells_beyond_bound == 0 &&
         nonfinite_mismatches == 0;
}

std::string Comparison::explain() const {
  std::string text = sentence(agrees() ? "agrees with" : "differs from",
                              " the reference: relative L2 ",
                              relative_l2,
                              " (at most ",
                              tolerance.relative_l2,
                              "), ",
                              cells_beyond_bound,
                              " cells beyond their bound");
  if (worst.token >= 0)
    text += sentence(
        ", the worst at ", place(worst), ", ", 100 * worst.share, " % of its bound ", worst.bound);
  if (nonfinite_cells > 0)
    text += sentence(
        "; ", nonfinite_cells, " cells not finite, ", nonfinite_mismatches, " of them different");
  if (first_mismatch.token >= 0) text += sentence(", the first at ", place(first_mismatch));
  return text;
}

Comparison compare(std::span<const Bfloat16> got,
                   const ReferenceOutput& wanted,
                   std::int64_t hidden,
                   Tolerance tolerance) {
  require(got.size() == wanted.y.size(),
          ErrorCode::kInvalidArgument,
          "y has ",
          got.size(),
          " cells; the reference has ",
          wanted.y.size());
  Comparison result;
  result.tolerance = tolerance;
  const double floor = kRmsShare * rms_of_finite(wanted.y);
  double squared_difference = 0;
  double squared_norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    ComparedCell cell{.token = at / hidden,
                      .column = at % hidden,
                      .got = to_float(got[i]),
                      .wanted = to_float(wanted.y[i])};
    if (!std::isfinite(cell.got) || !std::isfinite(cell.wanted)) {
      ++result.nonfinite_cells;
      if (got[i] == wanted.y[i]) continue;
      if (result.nonfinite_mismatches++ == 0) result.first_mismatch = cell;
      continue;
    }
    const double difference = std::abs(static_cast<double>(cell.got) - cell.wanted);
    cell.bound = tolerance.cell_factor * (kSlotShare * wanted.slot_magnitude[i] + floor);
    cell.share = ratio(difference, cell.bound);
    if (cell.share > 1) ++result.cells_beyond_bound;
    if (cell.share > result.worst.share || result.worst.token < 0) result.worst = cell;
    squared_difference += difference * difference;
    squared_norm += static_cast<double>(cell.wanted) * cell.wanted;
  }
  result.relative_l2 = ratio(std::sqrt(squared_difference), std::sqrt(squared_norm));
  return result;
}

}  // namespace megamoe
