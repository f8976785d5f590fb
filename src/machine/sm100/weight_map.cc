#include "machine/sm100/weight_map.hpp"

#include <cstring>

namespace megamoe::sm100 {

gpu::TensorMapRequest weight_map_request(const Problem& problem, Phase phase, std::byte* codes) {
  const WeightLayout layout = layout_of(problem, phase);
  const auto rows = static_cast<cuuint64_t>(problem.experts_per_rank()) *
                    static_cast<cuuint64_t>(layout.padded_rows());
  return {.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
          .dimensions = 2,
          .address = codes,
          .extents = {static_cast<cuuint64_t>(layout.padded_depth()), rows},
          .strides = {static_cast<cuuint64_t>(layout.row_bytes())},
          .box = {kStepDepth, kBlockRows, 1},
          .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
}

TensorMap to_argument(const CUtensorMap& map) {
  TensorMap argument;
  static_assert(sizeof argument == sizeof map);
  std::memcpy(&argument, &map, sizeof map);
  return argument;
}

}  // namespace megamoe::sm100
