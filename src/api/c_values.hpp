#pragma once

#include <cstddef>
#include <cstring>

#include "base/check.hpp"
#include "megamoe/layer_options.hpp"
#include "megamoe/megamoe.h"
#include "megamoe/problem.hpp"
#include "megamoe/weights.hpp"

namespace megamoe {

/// Bytes of a caller's structure that both sides know: a caller that was compiled with an older
/// header has a shorter one, a newer caller's is refused, as it may ask for what is not here.
template <class Struct>
std::size_t shared_bytes(const Struct* given, const char* name) {
  require(given != nullptr, ErrorCode::kInvalidArgument, name, " is null");
  require(given->struct_size >= sizeof(std::size_t) && given->struct_size <= sizeof(Struct),
          ErrorCode::kInvalidArgument,
          "struct_size of ",
          name,
          " is ",
          given->struct_size,
          "; this library knows ",
          sizeof(Struct),
          " bytes of it. Begin with its _INIT");
  return given->struct_size;
}

/// The caller's structure, with `defaults` for fields that its header did not have yet.
template <class Struct>
Struct read_struct(const Struct* given, Struct defaults, const char* name) {
  std::memcpy(&defaults, given, shared_bytes(given, name));
  return defaults;
}

/// Fills in the fields that the caller's header had.
template <class Struct>
void write_struct(Struct* to, Struct values, const char* name) {
  values.struct_size = shared_bytes(to, name);
  std::memcpy(to, &values, values.struct_size);
}

Problem problem_of(const megamoe_problem* given);
/// Null gives the defaults.
LayerOptions options_of(const megamoe_layer_options* given, int ranks);
WeightView weights_of(const megamoe_weights* given);

}  // namespace megamoe
