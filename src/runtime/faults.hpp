#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/call.hpp"
#include "protocol/fault.hpp"

namespace megamoe {

/// Why a rank left a call, as a person reads it: who, where it stood, what it saw, and whose doing
/// it was. `late` are the ranks that had not entered the barrier then.
std::string fault_sentence(const FaultRecord& record,
                           const std::vector<int>& late,
                           std::uint64_t timeout_ms);

/// What an abort word says: "rank 2 died".
std::string abort_sentence(const Abort& abort);

/// What a rank's input lacks; all ranks say the same.
std::string refusal_sentence(const Refusal& refusal, const Problem& problem);

}  // namespace megamoe
