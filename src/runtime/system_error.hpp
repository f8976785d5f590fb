#pragma once

#include <string>
#include <system_error>

#include "base/check.hpp"

namespace megamoe {

/// What errno says: "No such file or directory".
inline std::string system_reason(int error_number) {
  return std::generic_category().message(error_number);
}

/// Throws Error(kRunFailed): "<what>: <errno's reason>".
[[noreturn]] inline void throw_system_error(const std::string& what, int error_number) {
  throw Error(ErrorCode::kRunFailed, sentence(what, ": ", system_reason(error_number)));
}

}  // namespace megamoe
