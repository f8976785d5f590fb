#include "runtime/group/link.hpp"

#include "base/check.hpp"

namespace megamoe {

std::string rank_list(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return sentence("rank ", ranks.front());
  std::string list = "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) list += i + 1 == ranks.size() ? " and " : ", ";
    list += std::to_string(ranks[i]);
  }
  return list;
}

}  // namespace megamoe
