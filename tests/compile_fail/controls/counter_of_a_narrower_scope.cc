#include "machine/cpu/team.hpp"

// The mistake left out.
void tell(megamoe::cpu::Team& m, const megamoe::Call& call) {
  m.announce(call.peers.on(1, call.workspace.arrival), std::uint64_t{1});
}
