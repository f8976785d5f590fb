#pragma once

#include <vector>

#include "device_layer.hpp"
#include "stage_check.hpp"

namespace megamoe::test {

StageReport check_stages(const DeviceLayer& layer,
                         int rank,
                         const std::vector<RandomInput>& inputs,
                         const RandomWeights& weights);

}  // namespace megamoe::test
