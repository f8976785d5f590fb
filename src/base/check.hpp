#pragma once

#include <cstdint>
#include <sstream>
#include <string>

#include "megamoe/error.hpp"

namespace megamoe {

/// Joins its arguments into one sentence; numbers and strings as a stream prints them.
template <class... Parts>
std::string sentence(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws Error(code) with the joined sentence unless `holds`.
template <class... Parts>
void require(bool holds, ErrorCode code, const Parts&... parts) {
  if (!holds) throw Error(code, sentence(parts...));
}

/// Throws Error(kInvalidArgument) with the field, its value and the bounds unless that is `least`
/// to `most`.
inline void require_within(const char* field,
                           std::int64_t value,
                           std::int64_t least,
                           std::int64_t most) {
  require(value >= least && value <= most,
          ErrorCode::kInvalidArgument,
          field,
          " is ",
          value,
          "; it must be ",
          least,
          " to ",
          most);
}

}  // namespace megamoe

// A promise of this library; states the condition, so that a report of it can be acted on.
#define MEGAMOE_CHECK(condition)                                                                 \
  do {                                                                                           \
    if (!(condition))                                                                            \
      throw ::megamoe::Error(                                                                    \
          ::megamoe::ErrorCode::kInternal,                                                       \
          ::megamoe::sentence(                                                                   \
              __FILE__, ":", __LINE__, ": ", #condition, " does not hold; please report this")); \
  } while (false)
