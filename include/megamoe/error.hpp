#pragma once

#include <stdexcept>
#include <string>

namespace megamoe {

/// What kind of thing went wrong. The command line's exit codes follow it.
enum class ErrorCode {
  kInvalidArgument,  ///< a value that this or another rank's caller gave is out of its bounds; exit
                     ///< 2
  kBadFile,          ///< a file is truncated, lies about itself, or lacks what is needed; exit 2
  kUnsupportedMachine,  ///< this computer can't do it; exit 3
  kRunFailed,           ///< a wait expired, or a rank died or left; exit 4
  kInternal,            ///< a promise of this library is broken; please report it
};

/// The one exception type of the library. `what()` is a sentence that names the thing, its value
/// and the bound that it broke, and is meant to be shown to a person as it is.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace megamoe
