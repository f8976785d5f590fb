#pragma once

#include <memory>

#include "files/safetensors_file.hpp"
#include "files/weight_source.hpp"

namespace megamoe {

/// Whether the file is a layer of this project's own layout (has l1.weight), and not a
/// checkpoint's.
bool is_layer_file(const SafetensorsFile& file);

/// The layer of such a file:
///   l1.weight  U8 [E,2I,H/2] or F4 [E,2I,H]      l1.scale  U8 or F8_E8M0 [E,2I,H/32] or
///   [E,2I/32,H/32] l2.weight  U8 [E,H,I/2]  or F4 [E,H,I]       l2.scale  U8 or F8_E8M0 [E,H,I/32]
///   or [E,H/32,I/32] l1.bias [E,2I], l2.bias [E,H], F32 or BF16, may be absent; one alone stands
///   with zeros for the other.
std::unique_ptr<WeightSource> open_layer_file(const SafetensorsFile& file);

}  // namespace megamoe
