#pragma once

#include <cstdint>

#include "runtime/group/link.hpp"

namespace megamoe {

/// Collective, by ranks that are processes: throws the same Error(kUnsupportedMachine) on every
/// rank unless each has a card of its own, and those that this process sees reach each other.
void require_own_cards(Link& link, int card, std::uint64_t timeout_ms);

}  // namespace megamoe
