#pragma once

#include <cstdint>

namespace megamoe {

/// Random bits as a pure function of (seed, stream, counter): any element of a synthetic layer can
/// be made alone, in any order, with the same result everywhere. Mixing as in SplitMix64.
class CounterRandom {
 public:
  constexpr CounterRandom(std::uint64_t seed, std::uint64_t stream)
      : key_(mix(mix(seed) ^ (stream * kStep))) {}

  constexpr std::uint64_t operator()(std::uint64_t counter) const {
    return mix(key_ + counter * kStep);
  }

  /// A whole number below `bound`, 1..2^32; bias below 2^-32.
  constexpr std::uint64_t below(std::uint64_t counter, std::uint64_t bound) const {
    return ((*this)(counter) >> 32) * bound >> 32;
  }

 private:
  static constexpr std::uint64_t kStep = 0x9E37'79B9'7F4A'7C15;  // 2^64 / golden ratio

  static constexpr std::uint64_t mix(std::uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xBF58'476D'1CE4'E5B9;
    bits = (bits ^ bits >> 27) * 0x94D0'49BB'1331'11EB;
    return bits ^ bits >> 31;
  }

  std::uint64_t key_;
};

}  // namespace megamoe
