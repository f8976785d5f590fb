#pragma once

#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "files/safetensors_file.hpp"
#include "megamoe/problem.hpp"

namespace megamoe {

/// A width that a tensor's axis gives, as an int; throws unless it is a multiple of 32 from 32 to
/// kMaxLinearWidth.
inline int checked_width(const TensorView& tensor, std::string_view meaning, std::int64_t width) {
  require(width >= 32 && width <= kMaxLinearWidth && width % 32 == 0,
          ErrorCode::kBadFile,
          tensor.where(),
          " has shape ",
          to_string(tensor.shape),
          ", which makes ",
          meaning,
          " ",
          width,
          "; it must be a multiple of 32 from 32 to ",
          kMaxLinearWidth);
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
