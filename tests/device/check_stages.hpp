#pragma once

#include <vector>

#include "device_layer.hpp"
#include "stage_check.hpp"

namespace megamoe::test {

StageReport check_stages(const DeviceLayer& layer,
                         int rank,
                         const std::vector<RandomInput>& inputs,
                         const RandomWeights& weights);

// The whole layer in fp64 with the contract's roundings, some channels of some tokens, against y.
Distance check_end_to_end(const DeviceRanks& layer,
                          int rank,
                          const RandomInput& input,
                          const RandomWeights& weights);

}  // namespace megamoe::test
