#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/group/link.hpp"

namespace megamoe {

/// Collective: this process is `rank` of `ranks` that meet under `name`, an abstract socket of
/// rank 0's, which exists nowhere but in the kernel and only until all are there.
std::shared_ptr<Link> meet_by_name(int rank,
                                   int ranks,
                                   const std::string& name,
                                   std::uint64_t timeout_ms);

}  // namespace megamoe
