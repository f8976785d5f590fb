#include "machine/cpu/team.hpp"
#include "protocol/forward.hpp"

// A machine that lacks a verb is refused where the protocol is called, and the verb is named.
class Incomplete : public megamoe::cpu::Team {
 public:
  using Team::Team;
  void bump_progress() = delete;
};

bool run(Incomplete& m, const megamoe::Call& call) {
  return megamoe::dispatch(m, call);
}
