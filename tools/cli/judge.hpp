#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "cli/layer_run.hpp"
#include "numerics/bfloat16.hpp"
#include "reference/compare.hpp"

namespace megamoe::cli {

/// What was compared with the fp64 reference, and how it came out.
struct Judgement {
  Comparison comparison;
  std::int64_t compared_tokens = 0;
  std::int64_t total_tokens = 0;

  bool agrees() const { return comparison.agrees(); }
  std::string explain() const;
  nlohmann::ordered_json to_json() const;
};

/// What a machine by this name may differ by.
Tolerance tolerance_of(const std::string& machine);

/// Compares `y` [T, H] with the reference; of many tokens an evenly spread sample, since the
/// reference takes seconds for what a machine does in milliseconds.
Judgement judge(const LayerRun& run, std::span<const Bfloat16> y, const Tolerance& tolerance);

}  // namespace megamoe::cli
