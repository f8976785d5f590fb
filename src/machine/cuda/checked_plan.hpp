#pragma once

#include <stdexcept>

namespace megamoe::gpu {

// A plan that compiles is a legal one: what_is_wrong(plan), the machine's, says why another is not.
template <class Plan>
consteval Plan checked(Plan plan) {
  if (what_is_wrong(plan) != nullptr) throw std::invalid_argument(what_is_wrong(plan));
  return plan;
}

}  // namespace megamoe::gpu
