#pragma once

#include <functional>

#include "machine/cuda/packed_range.hpp"

namespace megamoe {

/// Calls `pack` for ranges that make up `all`, from several threads at once; returns when all are
/// done. `pack` must not throw.
void pack_in_parts(const gpu::PackedRange& all,
                   const std::function<void(const gpu::PackedRange&)>& pack);

}  // namespace megamoe
