#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace megamoe::cli {

/// What a flag's whole number may be.
struct Range {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

/// A sentence with flag, value and bounds is thrown for what is no whole number of the range.
std::uint64_t parse_whole_number(const std::string& flag, const std::string& text, Range range);

/// Likewise; NaN and infinity are numbers.
double parse_number(const std::string& flag, const std::string& text);

template <class Target>
struct NumberIn {
  using Type = Target;
};
template <class Target>
struct NumberIn<std::optional<Target>> {
  using Type = Target;
};

/// A flag with a whole number into an integer, or an optional one. The parser library's own
/// conversion would let -1 become 2^64 - 1, and names no bounds.
template <class Target>
CLI::Option* add_whole_number(
    CLI::App& verb, const std::string& flag, Target& to, Range range, const std::string& help) {
  using Number = typename NumberIn<Target>::Type;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Number>::max());
  range.most = std::min(range.most, kMost);
  return verb
      .add_option_function<std::string>(
          flag,
          [flag, range, &to](const std::string& text) {
            to = static_cast<Number>(parse_whole_number(flag, text, range));
          },
          help)
      ->type_name("N");
}

/// A flag with a number into a double, or an optional one.
template <class Target>
CLI::Option* add_number(CLI::App& verb,
                        const std::string& flag,
                        Target& to,
                        const std::string& help) {
  return verb
      .add_option_function<std::string>(
          flag, [flag, &to](const std::string& text) { to = parse_number(flag, text); }, help)
      ->type_name("X");
}

}  // namespace megamoe::cli
