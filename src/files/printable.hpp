#pragma once

#include <string>
#include <string_view>

namespace megamoe {

/// A name out of a file, fit for a sentence on a terminal: in quotes, cut to 100 bytes, everything
/// but plain ASCII shown as '?', since whoever wrote the file chose these bytes.
inline std::string printable(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  std::string shown = "'";
  for (char c : name.substr(0, kLongest))
    shown += c >= 0x20 && c < 0x7F ? c : '?';
  return shown + (name.size() > kLongest ? "...'" : "'");
}

/// Appends to a list in a sentence: "a, b, c".
inline void append_listed(std::string& list,
                          std::string_view item,
                          std::string_view separator = ", ") {
  if (!list.empty()) list += separator;
  list += item;
}

}  // namespace megamoe
