#pragma once

#include <cstddef>
#include <cstdint>

#include "megamoe/problem.hpp"

namespace megamoe {

/// Weights in canonical layout: what callers give and what files hold. Borrowed, row-major, without
/// padding; N stands for the experts in view (those of one rank, or all of them).
///
///   linear1         [N, 2I, H/2]   E2M1, two in a byte, the low nibble has the even k;
///                                  rows gate 0..I-1, then up 0..I-1
///   linear1_scale   [N, 2I, H/32]  UE8M0, one byte per row and 32 elements along H
///   linear2         [N, H, I/2]    E2M1 as above, rows are output columns
///   linear2_scale   [N, H, I/32]   UE8M0
///   linear1_bias    [N, 2I]        fp32, or null: no bias
///   linear2_bias    [N, H]         fp32, or null: no bias
struct WeightView {
  const std::uint8_t* linear1 = nullptr;
  const std::uint8_t* linear1_scale = nullptr;
  const std::uint8_t* linear2 = nullptr;
  const std::uint8_t* linear2_scale = nullptr;
  const float* linear1_bias = nullptr;
  const float* linear2_bias = nullptr;

  /// The view that begins at expert `index` of this one: of that expert alone, or of it and those
  /// that follow (the experts of rank r begin at r * problem.experts_per_rank()).
  constexpr WeightView expert(int index, const Problem& problem) const {
    const auto elements = static_cast<std::size_t>(index) *
                          static_cast<std::size_t>(problem.hidden) *
                          static_cast<std::size_t>(problem.intermediate);
    const auto hidden = static_cast<std::size_t>(index) * static_cast<std::size_t>(problem.hidden);
    const auto intermediate =
        static_cast<std::size_t>(index) * static_cast<std::size_t>(problem.intermediate);
    return {
        .linear1 = linear1 + elements,
        .linear1_scale = linear1_scale + elements / 16,
        .linear2 = linear2 + elements / 2,
        .linear2_scale = linear2_scale + elements / 32,
        .linear1_bias = linear1_bias == nullptr ? nullptr : linear1_bias + 2 * intermediate,
        .linear2_bias = linear2_bias == nullptr ? nullptr : linear2_bias + hidden,
    };
  }
};

}  // namespace megamoe
