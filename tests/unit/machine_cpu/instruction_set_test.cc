// Instruction sets are listed, named and refused as the command line needs it.
#include "machine/cpu/tile/instruction_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "machine/cpu/processor.hpp"
#include "machine/cpu/tile/tile.hpp"
#include "megamoe/error.hpp"

namespace megamoe::cpu {
namespace {

// One that this computer can't have, being of another architecture.
constexpr InstructionSet kForeign = kIsX86 ? InstructionSet::kNeon : InstructionSet::kAvx2;

template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "nothing was thrown"};
}

TEST(InstructionSetTest, ListsFromSlowestToBest) {
  const auto sets = supported_instruction_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.front(), InstructionSet::kScalar);
  EXPECT_EQ(sets.back(), best_instruction_set());
  EXPECT_TRUE(std::is_sorted(sets.begin(), sets.end()));
  EXPECT_EQ(TileKernel().instruction_set(), best_instruction_set());
}

TEST(InstructionSetTest, NamesComeBack) {
  for (const InstructionSet set : supported_instruction_sets())
    EXPECT_EQ(instruction_set_of(name(set)), set) << name(set);
}

TEST(InstructionSetTest, RefusesAnUnknownNameAndListsWhatThereIs) {
  const Error error = error_of([] { instruction_set_of("avx3"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("\"avx3\""), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("scalar"), std::string::npos) << error.what();
}

TEST(InstructionSetTest, RefusesASetOfAnotherArchitecture) {
  const Error by_name = error_of([] { instruction_set_of(name(kForeign)); });
  EXPECT_EQ(by_name.code(), ErrorCode::kUnsupportedMachine) << by_name.what();
  const Error by_kernel = error_of([] { TileKernel kernel(kForeign); });
  EXPECT_EQ(by_kernel.code(), ErrorCode::kUnsupportedMachine) << by_kernel.what();
}

}  // namespace
}  // namespace megamoe::cpu
