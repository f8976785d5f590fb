#include "files/json_file.hpp"

#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "files/mapped_file.hpp"

namespace megamoe {

nlohmann::json read_json_object(const std::string& path, std::size_t max_bytes) {
  constexpr int kDeepest = 64;
  const MappedFile file(path);
  const auto text = file.bytes();
  require(text.size() <= max_bytes,
          ErrorCode::kBadFile,
          path,
          " has ",
          text.size(),
          " bytes; the most is ",
          max_bytes);
  const auto depth_is_bounded = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    require(depth <= kDeepest, ErrorCode::kBadFile, path, " is nested deeper than ", kDeepest);
    return true;
  };
  try {
    nlohmann::json parsed = nlohmann::json::parse(text.begin(), text.end(), depth_is_bounded);
    require(parsed.is_object(), ErrorCode::kBadFile, path, " is not a JSON object");
    return parsed;
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(ErrorCode::kBadFile,
                sentence(path, " is not JSON: it goes wrong at its byte ", error.byte));
  }
}

}  // namespace megamoe
