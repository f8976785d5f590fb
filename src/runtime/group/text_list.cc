#include "runtime/group/text_list.hpp"

#include <cstdint>
#include <cstring>

namespace megamoe {

std::string join_texts(const std::vector<std::string>& texts) {
  std::string whole;
  for (const std::string& text : texts) {
    const std::uint64_t bytes = text.size();
    whole.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    whole += text;
  }
  return whole;
}

std::vector<std::string> split_texts(const std::string& whole) {
  std::vector<std::string> texts;
  std::size_t at = 0;
  while (at < whole.size()) {
    std::uint64_t bytes = 0;
    if (whole.size() - at < sizeof bytes) return {};
    std::memcpy(&bytes, whole.data() + at, sizeof bytes);
    at += sizeof bytes;
    if (whole.size() - at < bytes) return {};
    texts.push_back(whole.substr(at, bytes));
    at += bytes;
  }
  return texts;
}

}  // namespace megamoe
