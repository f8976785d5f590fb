#pragma once

#include <string>

#include "runtime/configuration.hpp"

namespace megamoe {

/// What processes must share to form a group: the host, this library's version, the number of
/// ranks.
Configuration host_configuration(int ranks);

}  // namespace megamoe
