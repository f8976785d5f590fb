#pragma once

#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "files/safetensors_file.hpp"
#include "megamoe/problem.hpp"

namespace megamoe {

inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;  // of hidden and intermediate

/// A width that a tensor's axis gives, as an int; throws unless it is a multiple of 32 from 32 to
/// kMaxWidth.
inline int checked_width(const TensorView& tensor, std::string_view meaning, std::int64_t width) {
  require(width >= 32 && width <= kMaxWidth && width % 32 == 0,
          ErrorCode::kBadFile,
          tensor.where(),
          " has shape ",
          to_string(tensor.shape),
          ", which makes ",
          meaning,
          " ",
          width,
          "; it must be a multiple of 32 from 32 to ",
          kMaxWidth);
  return static_cast<int>(width);
}

/// A number of experts, likewise.
inline int checked_experts(const TensorView& tensor, std::int64_t experts) {
  require(experts >= 1 && experts <= kMaxExperts,
          ErrorCode::kBadFile,
          tensor.where(),
          " has ",
          experts,
          " experts; it must have 1 to ",
          kMaxExperts);
  return static_cast<int>(experts);
}

}  // namespace megamoe
