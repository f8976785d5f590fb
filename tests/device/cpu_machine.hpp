#pragma once

#include <cstdint>
#include <vector>

#include "numerics/bfloat16.hpp"
#include "random_layer.hpp"

namespace megamoe::test {

// What one call of the CPU machine gives, by rank.
struct CpuResult {
  std::vector<std::vector<Bfloat16>> outputs;
  std::vector<std::vector<std::uint32_t>> expert_rows;
};

// Through the library, all ranks in this process.
CpuResult run_on_cpu(const Problem& problem,
                     const RandomWeights& weights,
                     const std::vector<RandomInput>& inputs);

}  // namespace megamoe::test
