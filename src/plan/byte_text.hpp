#pragma once

#include <cstdint>
#include <string>

namespace megamoe {

/// A number of bytes as a person reads it: "384 B", "1.5 KiB", "2.25 GiB".
std::string byte_text(std::uint64_t bytes);

}  // namespace megamoe
