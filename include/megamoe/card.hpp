#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace megamoe {

/// A card that CUDA shows to this process; its number is its place in the list.
struct Card {
  std::string name;
  int sms = 0;
  std::uint64_t memory = 0;      ///< bytes
  std::string capability;        ///< of compute, such as "9.0"
  std::vector<int> unreachable;  ///< cards whose memory it can't work on: no layer has both
};

}  // namespace megamoe
