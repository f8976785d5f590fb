#pragma once

#include <nlohmann/json.hpp>

#include "megamoe/plan.hpp"

namespace megamoe {

/// The plan with stable names, in a stable order: what `megamoe plan --json` prints. Bytes are
/// numbers of bytes; symmetric_budget is null when there is none.
nlohmann::ordered_json to_json(const Plan& plan);

}  // namespace megamoe
