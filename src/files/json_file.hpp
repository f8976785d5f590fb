#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace megamoe {

/// Parses a JSON file whose top is an object. Refuses more than `max_bytes` and nesting deeper
/// than 64.
nlohmann::json read_json_object(const std::string& path, std::size_t max_bytes);

}  // namespace megamoe
