#include "cli/table.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

namespace megamoe::cli {

void FactTable::add(std::string name, std::string value) {
  facts_.push_back({std::move(name), std::move(value)});
}

void FactTable::print(std::ostream& out) const {
  std::size_t width = 0;
  for (const Fact& fact : facts_)
    width = std::max(width, fact.name.size());
  for (const Fact& fact : facts_)
    out << "  " << std::left << std::setw(static_cast<int>(width)) << fact.name << "  "
        << fact.value << "\n";
}

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit)
    value /= 1000;
  return fixed(value, unit == 0 ? 0 : 1) + " " + kUnits[unit];
}

std::string count_text(std::uint64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

}  // namespace megamoe::cli
