#pragma once

#include <cstdint>

#include "files/counter_random.hpp"
#include "files/synthetic.hpp"

namespace megamoe {

/// What the draws of a synthetic layer are for; each purpose and index has its own.
enum class Stream : std::uint64_t {
  kWeight1 = 1,
  kScale1,
  kWeight2,
  kScale2,
  kRow,
  kColumn,
  kChoice,
  kRoutingWeight,
  kPopularity
};

inline CounterRandom random_of(const SyntheticLayer& layer, Stream stream, std::int64_t index = 0) {
  return {layer.seed, static_cast<std::uint64_t>(stream) << 48 | static_cast<std::uint64_t>(index)};
}

}  // namespace megamoe
