#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/call.hpp"
#include "sim/expectation.hpp"

namespace megamoe::sim {

/// What a rank's call left in the words that a call must bring back to zero before its last
/// barrier; empty when that is nothing.
std::string left_behind(const Call& call);

/// What is wrong with what a rank's call gave to its host, in one sentence; empty when nothing is.
std::string wrong_result(const Call& call,
                         const Expectation& expectation,
                         std::uint64_t first_epoch,
                         const std::vector<Bfloat16>& output);

}  // namespace megamoe::sim
