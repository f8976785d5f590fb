#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/safetensors_header.hpp"

namespace megamoe {

/// The tensors that a header's JSON names, in its order, with its word for their types, shapes and
/// places. Throws Error(kBadFile) for whatever is not the header's grammar:
///   {name: {"dtype": text, "shape": [n...], "data_offsets": [n, n]}..., "__metadata__": {text:
///   text...}}
std::vector<TensorEntry> read_header_json(const std::string& path,
                                          std::span<const std::uint8_t> text);

}  // namespace megamoe
