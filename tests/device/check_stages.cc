#include "check_stages.hpp"

#include "pool_image.hpp"

namespace megamoe::test {

StageReport check_stages(const DeviceLayer& layer,
                         int rank,
                         const std::vector<RandomInput>& inputs,
                         const RandomWeights& weights) {
  return StageCheck<PoolImage>(layer,
                               {rank, layer.options().block_m},
                               inputs,
                               weights,
                               [&](int blocks) { return PoolImage(layer, rank, blocks); })
      .run();
}

}  // namespace megamoe::test
