#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/check.hpp"

// From a tile size that a plan chose to the code that was compiled for it.
namespace megamoe::gpu {

/// make(std::integral_constant<int, block_m>), for the one of `kSizes` that is block_m. Plans
/// choose among those: none is Error(kInternal), which names `machine`.
template <const auto& kSizes, class Make>
auto of_block_size(std::string_view machine, int block_m, Make&& make) {
  std::optional<decltype(make(std::integral_constant<int, kSizes.front()>{}))> made;
  const auto try_size = [&](auto size) {
    if (size() == block_m) made.emplace(make(size));
  };
  [&]<std::size_t... kIndices>(std::index_sequence<kIndices...>) {
    (try_size(std::integral_constant<int, kSizes[kIndices]>{}), ...);
  }
  (std::make_index_sequence<kSizes.size()>{});
  if (made) return *std::move(made);
  std::string sizes;
  for (const int size : kSizes)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  throw Error(ErrorCode::kInternal,
              sentence("block_m is ", block_m, "; ", machine, " kernels exist for ", sizes));
}

}  // namespace megamoe::gpu
