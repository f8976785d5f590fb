#include "machine/cpu/team.hpp"
#include "protocol/forward.hpp"

// A verb that answers in another type than promised is no such verb.
class Imprecise : public megamoe::cpu::Team {
 public:
  using Team::Team;
  unsigned reduce_min(unsigned value) { return value; }
};

bool run(Imprecise& m, const megamoe::Call& call) {
  return megamoe::dispatch(m, call);
}
