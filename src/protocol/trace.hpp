#pragma once

#include <cstdint>

namespace megamoe {

/// Points of a call that a machine may note the time of, in the compute role.
enum class Milestone : std::uint8_t {
  kRouted,    ///< barrier 1 passed: every rank's counts are known
  kComputed,  ///< this worker's blocks are done
  kMet,       ///< barrier 2 passed: every rank's rows are pushed
  kCombined,  ///< this worker's tokens are summed
};

}  // namespace megamoe
