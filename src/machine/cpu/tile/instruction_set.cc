#include "machine/cpu/tile/instruction_set.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "machine/cpu/processor.hpp"
#include "machine/cpu/tile/tile_functions.hpp"

namespace megamoe::cpu {
namespace {

struct Named {
  InstructionSet set;
  std::string_view name;
  std::int64_t highway_target;  // what the computer must support
};

constexpr std::array kSets = {
    Named{InstructionSet::kScalar, "scalar", 0},
    Named{InstructionSet::kNeon, "neon", HWY_NEON},
    Named{InstructionSet::kSse4, "sse4", HWY_SSE4},
    Named{InstructionSet::kAvx2, "avx2", HWY_AVX2},
    Named{InstructionSet::kAvx512, "avx512", HWY_AVX3},
    Named{InstructionSet::kAvx512Bf16, "avx512-bf16", HWY_AVX3},
};

bool can_run(const Named& set) {
  if (functions_of(set.set) == nullptr) return false;
  if (set.set == InstructionSet::kAvx512Bf16 && !has_bf16_dot_products()) return false;
  return (hwy::SupportedTargets() & set.highway_target) == set.highway_target;
}

std::vector<InstructionSet> find_supported() {
  std::vector<InstructionSet> sets;
  for (const Named& set : kSets)
    if (can_run(set)) sets.push_back(set.set);
  return sets;
}

std::string names_of(std::span<const InstructionSet> sets) {
  std::string names;
  for (const InstructionSet set : sets)
    names += (names.empty() ? "" : ", ") + std::string(name(set));
  return names;
}

}  // namespace

std::string_view name(InstructionSet set) {
  for (const Named& named : kSets)
    if (named.set == set) return named.name;
  return "unknown";
}

std::span<const InstructionSet> supported_instruction_sets() {
  static const std::vector<InstructionSet> sets = find_supported();
  return sets;
}

bool is_supported(InstructionSet set) {
  const auto sets = supported_instruction_sets();
  return std::find(sets.begin(), sets.end(), set) != sets.end();
}

InstructionSet best_instruction_set() {
  return supported_instruction_sets().back();
}

InstructionSet instruction_set_of(std::string_view wanted) {
  for (const Named& named : kSets) {
    if (named.name != wanted) continue;
    require(is_supported(named.set),
            ErrorCode::kUnsupportedMachine,
            "this computer can't run the instruction set ",
            wanted,
            "; it can run ",
            names_of(supported_instruction_sets()));
    return named.set;
  }
  throw Error(ErrorCode::kInvalidArgument,
              sentence("there is no instruction set named \"",
                       wanted,
                       "\"; this computer can run ",
                       names_of(supported_instruction_sets())));
}

}  // namespace megamoe::cpu
