#pragma once

#include <nlohmann/json.hpp>

#include "megamoe/problem.hpp"

namespace megamoe::cli {

/// The sizes of a layer, as every verb's --json has them under "problem".
inline nlohmann::ordered_json problem_json(const Problem& p) {
  return {{"hidden", p.hidden},
          {"intermediate", p.intermediate},
          {"experts", p.experts},
          {"topk", p.topk},
          {"ranks", p.ranks},
          {"capacity", p.capacity}};
}

}  // namespace megamoe::cli
