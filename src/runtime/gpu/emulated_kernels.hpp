#pragma once

#include <memory>
#include <string>

#include "runtime/gpu/kernel_set.hpp"

namespace megamoe {

// Blackwell's kernels in the form that a Hopper card executes (src/emulation), for tests. One of
// two units is compiled: with them, or one that has none.

/// Why this build has none; empty when it has.
std::string why_no_emulated_kernels();

/// Only where it has.
std::unique_ptr<KernelSet> make_emulated_kernels(const LayerOptions& options);

}  // namespace megamoe
