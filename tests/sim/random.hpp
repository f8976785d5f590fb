#pragma once

#include <cstdint>

namespace megamoe::sim {

/// A finaliser of 64 bits: every bit of the result depends on every bit of the value.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

/// One hash of several numbers, in order.
template <class... Parts>
constexpr std::uint64_t mix_all(Parts... parts) {
  std::uint64_t hash = 0;
  ((hash = mix(hash ^ static_cast<std::uint64_t>(parts))), ...);
  return hash;
}

/// SplitMix64: the same numbers from the same seed with every compiler and library.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15U); }
  /// 0 .. bound - 1.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// least .. most, both included.
  constexpr int between(int least, int most) {
    return least + static_cast<int>(below(static_cast<std::uint64_t>(most - least) + 1));
  }
  constexpr bool one_in(std::uint64_t odds) { return below(odds) == 0; }
  template <class T, std::size_t kCount>
  constexpr T pick(const T (&choices)[kCount]) {
    return choices[below(kCount)];
  }

 private:
  std::uint64_t state_;
};

}  // namespace megamoe::sim
