#pragma once

#include <string>
#include <vector>

namespace megamoe {

/// One card that this process sees, by CUDA's number.
struct CardFacts {
  std::string name;
  int sms = 0;
  int major = 0, minor = 0;  ///< compute capability
  unsigned long long memory = 0;
};

/// All of them; empty without a driver or a card. Starts the driver in this process.
std::vector<CardFacts> visible_cards();

/// Why there is none, in the driver's words; empty where there are some.
std::string why_no_cards();

/// Of the driver and of the runtime in this build; or why there is no driver.
std::string versions_text();

/// "card 0 (NVIDIA H200)".
std::string card_text(int card, const CardFacts& facts);

/// Why two cards can't work on one layer: no loads and stores, or no atomics, between them; empty
/// if they can.
std::string why_not_peers(int card, int other);

/// Lets kernels on `card` reach memory of `others`.
void enable_peer_access(int card, const std::vector<int>& others);

}  // namespace megamoe
