#pragma once

#include <string>
#include <vector>

namespace megamoe {

/// Several texts as one, and back. Any bytes may be in them. A malformed whole gives no texts.
std::string join_texts(const std::vector<std::string>& texts);
std::vector<std::string> split_texts(const std::string& whole);

}  // namespace megamoe
