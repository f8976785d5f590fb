#pragma once

#include <memory>
#include <string>

#include "runtime/gpu/device_memory.hpp"

namespace megamoe {

// Memory of cards that rank processes share. One of two units is compiled: with NCCL, or one that
// has none.

/// Why rank processes can't share memory of their cards; empty when they can.
std::string why_no_windows();

/// Memory of `card` for a rank that is a process; only where there are windows.
std::unique_ptr<DeviceMemory> make_window_memory(int card);

}  // namespace megamoe
