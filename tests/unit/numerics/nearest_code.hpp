#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace megamoe {

// The rounding rule, said by search instead of by bits: `grid` holds the magnitudes of codes 0, 1,
// ... in ascending order, the answer is the nearest code, the even one of two that are equally
// near, and the largest beyond the grid's end.
inline std::uint8_t nearest_code(const std::vector<double>& grid, double magnitude) {
  if (magnitude >= grid.back()) return static_cast<std::uint8_t>(grid.size() - 1);
  std::size_t best = 0;
  for (std::size_t code = 1; code < grid.size(); ++code) {
    const double distance = std::abs(magnitude - grid[code]);
    const double least = std::abs(magnitude - grid[best]);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return static_cast<std::uint8_t>(best);
}

}  // namespace megamoe
