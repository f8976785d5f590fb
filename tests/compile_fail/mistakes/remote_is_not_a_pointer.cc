#include "protocol/symmetric.hpp"

// Somebody else's word can't be read like one's own: only a machine's verbs reach it.
int read(const megamoe::Peers& peers, megamoe::Sym<int> flag) {
  return *peers.on(1, flag);
}
