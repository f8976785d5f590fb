#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/group/link.hpp"

namespace megamoe {

/// Collective: does `work` on every rank and hands out what each returned. When it throws an Error
/// on some rank, every rank throws one with that rank's sentence (the lowest such rank's), so that
/// nobody goes on to a meeting that others will miss.
std::vector<std::string> agree(Link& link,
                               const Meeting& meeting,
                               const std::function<std::string()>& work);

}  // namespace megamoe
