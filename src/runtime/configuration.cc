#include "runtime/configuration.hpp"

#include <iomanip>
#include <limits>
#include <sstream>

#include "base/check.hpp"
#include "megamoe/version.hpp"

namespace megamoe {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

std::string field_of(const std::string& line) {
  return line.substr(0, line.find('='));
}

std::string value_of(const std::string& line) {
  const auto at = line.find('=');
  return at == std::string::npos ? "missing" : line.substr(at + 1);
}

/// The first field that differs; the first line of each is the hash, which says nothing.
[[noreturn]] void refuse(const std::string& first,
                         const std::string& other,
                         std::size_t rank,
                         const std::string& what) {
  const auto left = lines_of(first);
  const auto right = lines_of(other);
  for (std::size_t i = 1; i < std::max(left.size(), right.size()); ++i) {
    const std::string mine = i < left.size() ? left[i] : "";
    const std::string theirs = i < right.size() ? right[i] : "";
    if (mine == theirs) continue;
    throw Error(ErrorCode::kInvalidArgument,
                sentence("ranks 0 and ",
                         rank,
                         " disagree on ",
                         field_of(mine.empty() ? theirs : mine),
                         " of ",
                         what,
                         ": ",
                         value_of(mine),
                         " on rank 0, ",
                         value_of(theirs),
                         " on rank ",
                         rank));
  }
  throw Error(
      ErrorCode::kInternal,
      sentence(
          "the hashes of ", what, " differ between ranks 0 and ", rank, ", their fields do not"));
}

}  // namespace

std::string Configuration::text_of(float value) {
  std::ostringstream out;
  out << std::setprecision(std::numeric_limits<float>::max_digits10) << value;
  return out.str();
}

void Configuration::add_text(const std::string& field, const std::string& value) {
  fields_.emplace_back(field, value);
}

std::uint64_t Configuration::hash() const {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a, 64 bit
  const auto mix = [&](const std::string& text) {
    for (const char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  };
  for (const auto& [field, value] : fields_)
    mix(field + "=" + value + "\n");
  return hash;
}

std::string Configuration::text() const {
  std::ostringstream out;
  out << std::hex << hash() << "\n";
  for (const auto& [field, value] : fields_)
    out << field << "=" << value << "\n";
  return out.str();
}

void require_same(const std::vector<std::string>& texts, const std::string& what) {
  for (std::size_t rank = 1; rank < texts.size(); ++rank)
    if (texts[rank] != texts[0]) refuse(texts[0], texts[rank], rank, what);
}

Configuration layer_configuration(const Problem& problem,
                                  const Workspace& workspace,
                                  const std::string& machine) {
  Configuration c;
  c.add("version", std::string(kVersion));
  c.add("machine", machine);
  c.add("ranks", problem.ranks);
  c.add("experts", problem.experts);
  c.add("topk", problem.topk);
  c.add("hidden", problem.hidden);
  c.add("intermediate", problem.intermediate);
  c.add("capacity", problem.capacity);
  c.add("has_biases", static_cast<int>(problem.has_biases));
  const Activation& a = problem.activation;
  c.add("activation", std::string(a.kind == ActivationKind::kSwiglu ? "swiglu" : "swiglu-oai"));
  c.add("clamp", a.clamp);
  c.add("alpha", a.alpha);
  c.add("limit", a.limit);
  c.add("fast_math", static_cast<int>(a.fast_math));
  c.add("pool_rows", workspace.pool_rows);
  c.add("linear1_row_bytes", workspace.format.linear1_row_bytes);
  c.add("linear1_scale_bytes", workspace.format.linear1_scale_bytes);
  c.add("linear2_row_bytes", workspace.format.linear2_row_bytes);
  c.add("linear2_scale_bytes", workspace.format.linear2_scale_bytes);
  c.add("symmetric_bytes", workspace.bytes);
  return c;
}

}  // namespace megamoe
