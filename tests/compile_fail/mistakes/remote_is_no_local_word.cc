#include "machine/cpu/team.hpp"

// A counter of another rank can't be observed: its owner does that.
std::uint64_t look(megamoe::cpu::Team& m, const megamoe::Call& call) {
  return m.observe(call.peers.on(1, call.workspace.gate));
}
