#pragma once

#include <functional>
#include <string>

namespace megamoe {

/// A rank's place as a launcher left it.
struct LaunchedPlace {
  int rank = 0;
  int ranks = 1;
  std::string name;
};

/// Reads the place from environment variables; `get` answers with a variable's value or null.
/// Throws Error(kInvalidArgument) when there is none, when one is no number, and when the launcher
/// says that the ranks are spread over several hosts.
using GetVariable = std::function<const char*(const char* name)>;
LaunchedPlace place_from_environment(const GetVariable& get);

}  // namespace megamoe
