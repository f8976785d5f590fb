#include "runtime/gpu/gpu_kind.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "runtime/gpu/sm100_limits.hpp"
#include "runtime/gpu/sm90_limits.hpp"

namespace megamoe {

const GpuKind* find_gpu_kind(std::string_view name) {
  const auto* const found = std::find_if(
      kGpuKinds.begin(), kGpuKinds.end(), [&](const GpuKind& kind) { return kind.name == name; });
  return found == kGpuKinds.end() ? nullptr : found;
}

std::string machine_names() {
  std::string names = "cpu";
  for (const GpuKind& kind : kGpuKinds)
    names += (&kind == &kGpuKinds.back() ? " and " : ", ") + std::string(kind.name);
  return names;
}

std::string why_no_card(const GpuKind& kind, std::span<const CardFacts> cards) {
  if (std::any_of(cards.begin(), cards.end(), [&](const CardFacts& c) { return kind.runs_on(c); }))
    return {};
  std::string found;
  for (const CardFacts& card : cards)
    found += sentence(
        found.empty() ? "; there is " : ", ", card.name, " with ", card.major, ".", card.minor);
  return sentence("machine ",
                  kind.name,
                  " finds no card of compute capability ",
                  kind.major,
                  ".",
                  kind.minor,
                  " (",
                  kind.cards,
                  ") here",
                  found);
}

void require_numerics(const GpuKind& kind, const LayerOptions& options) {
  require(kind.has_fast_numerics || options.numerics != "fast",
          ErrorCode::kUnsupportedMachine,
          "numerics is fast; the ",
          kind.name,
          " machine has exact only");
}

Limits limits_of_kind(const GpuKind& kind, int num_sms, const LayerOptions& options) {
  if (kind.name == "sm90") return sm90_limits(num_sms, sm90_operands(options));
  return sm100_limits(num_sms);
}

std::vector<TileRule> tiles_with(std::span<const TileRule> tiles,
                                 const std::function<bool(int block_m)>& has_kernel) {
  std::vector<TileRule> there;
  for (const TileRule& tile : tiles)
    if (has_kernel(tile.block_m)) there.push_back(tile);
  if (!there.empty()) there.back().up_to_rows_per_expert = kAnyRows;
  return there;
}

}  // namespace megamoe
