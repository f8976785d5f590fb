#pragma once

#include <cstddef>

namespace megamoe::sim {

/// What a sanitizer has to be told about a change of stacks: nothing, where there is none.
struct FiberSanitizer {
  void created(const std::byte* /*stack*/, std::size_t /*bytes*/) {}
  void destroyed() {}
  void leaving_for(FiberSanitizer& /*next*/, bool /*for_ever*/) {}
  void arrived() {}
};

}  // namespace megamoe::sim
