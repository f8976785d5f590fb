#include "machine/cpu/team.hpp"

// The mistake left out.
std::uint64_t look(megamoe::cpu::Team& m, const megamoe::Call& call) {
  return m.observe(call.local(call.workspace.gate));
}
