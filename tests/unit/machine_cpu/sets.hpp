#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "machine/cpu/tile/tile.hpp"

namespace megamoe::cpu {

// A test over every instruction set of this computer.
class SetTest : public testing::TestWithParam<InstructionSet> {
 protected:
  TileKernel kernel_{GetParam()};
};

inline std::string set_label(const testing::TestParamInfo<InstructionSet>& set) {
  std::string label(name(set.param));
  std::replace(label.begin(), label.end(), '-', '_');
  return label;
}

inline auto all_sets() {
  const auto sets = supported_instruction_sets();
  return testing::ValuesIn(sets.begin(), sets.end());
}

}  // namespace megamoe::cpu
