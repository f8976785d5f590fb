#include "emulation/host/report_text.hpp"

#include <charconv>

namespace megamoe::emulation {
namespace {

std::string digits(std::uint64_t value, int base) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, value, base).ptr;
  return (base == 16 ? "0x" : "") + std::string(text, end);
}

}  // namespace

std::string text_of(const Report& report) {
  std::string text = "CTA " + std::to_string(report.cta) + ", warp " +
                     std::to_string(report.thread / 32) + ", lane " +
                     std::to_string(report.thread % 32) + ": ";
  std::size_t values_used = 0;
  for (std::size_t i = 0; i < sizeof report.text && report.text[i] != '\0'; ++i) {
    if (report.text[i] != '#' || values_used == 4) {
      text += report.text[i];
      continue;
    }
    const bool is_hexadecimal = i + 1 < sizeof report.text && report.text[i + 1] == 'x';
    i += is_hexadecimal ? 1 : 0;
    text += digits(report.values[values_used++], is_hexadecimal ? 16 : 10);
  }
  return text;
}

}  // namespace megamoe::emulation
