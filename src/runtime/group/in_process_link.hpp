#pragma once

#include <memory>
#include <vector>

#include "runtime/group/link.hpp"

namespace megamoe {

/// The links of ranks that are threads of this process, by rank.
std::vector<std::shared_ptr<Link>> make_in_process_links(int ranks);

}  // namespace megamoe
