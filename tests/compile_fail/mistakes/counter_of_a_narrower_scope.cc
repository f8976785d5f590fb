#include "machine/cpu/team.hpp"

// A word whose order reaches no further than its rank can't be announced to another one.
void tell(megamoe::cpu::Team& m, const megamoe::Call& call) {
  m.announce(call.peers.on(1, call.workspace.gate), std::uint64_t{1});
}
