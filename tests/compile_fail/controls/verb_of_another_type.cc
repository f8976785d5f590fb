#include "machine/cpu/team.hpp"
#include "protocol/forward.hpp"

// The mistake left out.
class Imprecise : public megamoe::cpu::Team {
 public:
  using Team::Team;
};

bool run(Imprecise& m, const megamoe::Call& call) {
  return megamoe::dispatch(m, call);
}
