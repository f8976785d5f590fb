#include "plan/byte_text.hpp"

#include <array>
#include <sstream>

namespace megamoe {

std::string byte_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  for (; value >= 1024.0 && unit + 1 < kUnits.size(); ++unit)
    value /= 1024.0;
  std::ostringstream out;
  out.precision(4);
  out << value << ' ' << kUnits[unit];
  return out.str();
}

}  // namespace megamoe
