#include "protocol/symmetric.hpp"

// The mistake left out.
int read(const megamoe::Peers& peers, megamoe::Sym<int> flag) {
  return *peers.local(flag);
}
