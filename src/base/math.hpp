#pragma once

#include <cstdint>

namespace megamoe {

template <class Integer>
constexpr Integer ceil_div(Integer value, Integer divisor) {
  return (value + divisor - 1) / divisor;
}

template <class Integer>
constexpr Integer align_up(Integer value, Integer alignment) {
  return ceil_div(value, alignment) * alignment;
}

static_assert(ceil_div(7, 3) == 3 && ceil_div(6, 3) == 2 && align_up(385, 384) == 768);

}  // namespace megamoe
