#include "cli/numbers.hpp"

#include <charconv>
#include <cstdlib>

#include "base/check.hpp"

namespace megamoe::cli {

std::uint64_t parse_whole_number(const std::string& flag, const std::string& text, Range range) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool is_good =
      error == std::errc() && stop == end && value >= range.least && value <= range.most;
  require(is_good,
          ErrorCode::kInvalidArgument,
          flag,
          " is ",
          text.empty() ? "empty" : text,
          "; it must be a whole number from ",
          range.least,
          " to ",
          range.most);
  return value;
}

double parse_number(const std::string& flag, const std::string& text) {
  char* stop = nullptr;
  const double value = std::strtod(text.c_str(), &stop);
  require(!text.empty() && stop == text.c_str() + text.size(),
          ErrorCode::kInvalidArgument,
          flag,
          " is ",
          text.empty() ? "empty" : text,
          "; it must be a number");
  return value;
}

}  // namespace megamoe::cli
