#pragma once

#include "device_ranks.hpp"
#include "stage_reference.hpp"

namespace megamoe::test {

// The whole layer in fp64 with the contract's roundings, some channels of some tokens, against y.
Distance check_end_to_end(const DeviceRanks& layer,
                          int rank,
                          const RandomInput& input,
                          const RandomWeights& weights);

}  // namespace megamoe::test
