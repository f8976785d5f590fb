#pragma once

#include "emulation/host/emulator.hpp"

namespace megamoe::emulation {

// What Blackwell's driver refuses of a 16U4_ALIGN16B map, or what is not emulated; null if nothing.
const char* what_is_wrong_with_float4(const TensorMapRequest& request);

// The map that Hopper's driver encodes in place of the request, and what the device must know.
TensorMapRequest in_bytes(const TensorMapRequest& request);
MapEntry entry_of(const TensorMapRequest& request);

}  // namespace megamoe::emulation
