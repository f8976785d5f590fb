#pragma once

#include <cstdint>
#include <vector>

namespace megamoe {

/// An even split of `tokens` over `ranks`; the first ranks take one more where it does not divide.
inline std::vector<std::int64_t> even_split(std::int64_t tokens, int ranks) {
  std::vector<std::int64_t> split(static_cast<std::size_t>(ranks), tokens / ranks);
  for (std::int64_t rank = 0; rank < tokens % ranks; ++rank)
    ++split[static_cast<std::size_t>(rank)];
  return split;
}

}  // namespace megamoe
