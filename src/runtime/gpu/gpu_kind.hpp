#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "megamoe/layer_options.hpp"
#include "plan/limits.hpp"
#include "runtime/gpu/cards.hpp"

namespace megamoe {

/// A GPU machine by its name: what it asks of a card and of the options. The same on every
/// computer, whatever is built.
struct GpuKind {
  std::string_view name;
  int major, minor;        ///< compute capability of the cards that it runs on
  std::string_view cards;  ///< what such cards are called
  bool has_fast_numerics;  ///< besides the exact ones, and by default
  bool is_emulated;        ///< another card's kernels, for tests
  bool is_for_auto;        ///< taken where nobody names a machine

  constexpr bool runs_on(const CardFacts& card) const {
    return card.major == major && card.minor == minor;
  }
};

inline constexpr std::array kGpuKinds = {
    GpuKind{.name = "sm90",
            .major = 9,
            .minor = 0,
            .cards = "Hopper",
            .has_fast_numerics = true,
            .is_emulated = false,
            .is_for_auto = true},
    // Its kernels have not run on such a card yet: who wants them says so.
    GpuKind{.name = "sm100",
            .major = 10,
            .minor = 0,
            .cards = "Blackwell",
            .has_fast_numerics = false,
            .is_emulated = false,
            .is_for_auto = false},
    // For tests.
    GpuKind{.name = "sm100-emulated",
            .major = 9,
            .minor = 0,
            .cards = "Hopper",
            .has_fast_numerics = false,
            .is_emulated = true,
            .is_for_auto = false},
};

/// Null for another name.
const GpuKind* find_gpu_kind(std::string_view name);

/// The names of all machines, the CPU's among them, for a sentence: "cpu, sm90 and ...".
std::string machine_names();

/// Why none of these cards is one for it; empty where one is.
std::string why_no_card(const GpuKind& kind, std::span<const CardFacts> cards);

/// Throws Error(kUnsupportedMachine) for numerics that it doesn't have.
void require_numerics(const GpuKind& kind, const LayerOptions& options);

/// Its limits for the plan on so many SMs, with all kernels that exist.
Limits limits_of_kind(const GpuKind& kind, int num_sms, const LayerOptions& options);

/// Those of `tiles` whose kernels are there; the last of them takes any number of rows.
std::vector<TileRule> tiles_with(std::span<const TileRule> tiles,
                                 const std::function<bool(int block_m)>& has_kernel);

}  // namespace megamoe
