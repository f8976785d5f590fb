#pragma once

#include <string>

#include "emulation/shared_with_device.hpp"

namespace megamoe::emulation {

// The report's sentence, with its values in their places.
std::string text_of(const Report& report);

}  // namespace megamoe::emulation
