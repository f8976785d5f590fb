#include <cmath>

#include "base/check.hpp"
#include "megamoe/problem.hpp"

namespace megamoe {
namespace {

void require_width(const char* field, int value) {
  require(value >= 32 && value <= kMaxLinearWidth && value % 32 == 0,
          ErrorCode::kInvalidArgument,
          field,
          " is ",
          value,
          "; it must be a multiple of 32 from 32 to ",
          kMaxLinearWidth);
}

// A NaN fails every comparison, so it is refused too.
void require_not_negative(const char* field, float value) {
  require(value >= 0.0F,
          ErrorCode::kInvalidArgument,
          field,
          " is ",
          value,
          "; it must be at least 0 (infinity means no clamp)");
}

}  // namespace

void validate(const Problem& problem) {
  require_within("ranks", problem.ranks, 1, kMaxRanks);
  require_within("experts", problem.experts, 1, kMaxExperts);
  require(problem.experts % problem.ranks == 0,
          ErrorCode::kInvalidArgument,
          "experts is ",
          problem.experts,
          "; it must be a multiple of ranks, which is ",
          problem.ranks);
  require_within("topk", problem.topk, 1, kMaxTopk);
  require_width("hidden", problem.hidden);
  require_width("intermediate", problem.intermediate);
  require_within("capacity", problem.capacity, 1, kMaxCapacity);
  const Activation& a = problem.activation;
  require(a.kind == ActivationKind::kSwiglu || a.kind == ActivationKind::kSwigluOai,
          ErrorCode::kInvalidArgument,
          "activation is number ",
          static_cast<int>(a.kind),
          "; swiglu and swiglu-oai are known");
  require_not_negative("clamp", a.clamp);
  require(std::isfinite(a.alpha),
          ErrorCode::kInvalidArgument,
          "alpha is ",
          a.alpha,
          "; it must be finite");
  require_not_negative("limit", a.limit);
}

}  // namespace megamoe
