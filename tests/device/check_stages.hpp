#pragma once

#include <vector>

#include "device_layer.hpp"
#include "stage_reference.hpp"

namespace megamoe::test {

// What came out of each stage of one call against fp64 fed with what went in.
struct StageReport {
  std::int64_t wrong_pool_bytes = 0;  // pulled rows: bit for bit
  std::int64_t wrong_headers = 0;     // source, weight, exponent
  Distance activations;               // linear 1 to the pool's second buffer
  Distance outputs;                   // linear 2's rows, beyond their bf16 rounding
  std::int64_t wrong_sums = 0;        // y against the fixed-order sum of the slots
};

StageReport check_stages(const DeviceLayer& layer,
                         int rank,
                         const std::vector<RandomInput>& inputs,
                         const RandomWeights& weights);

// The whole layer in fp64 with the contract's roundings, some channels of some tokens, against y.
Distance check_end_to_end(const DeviceLayer& layer,
                          int rank,
                          const RandomInput& input,
                          const RandomWeights& weights);

}  // namespace megamoe::test
