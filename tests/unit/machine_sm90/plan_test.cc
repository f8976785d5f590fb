#include <gtest/gtest.h>

#include <string>

#include "machine/sm90/plans.hpp"

namespace megamoe::sm90 {
namespace {

template <Operands kOperands, int kBlockM>
void expect_fits() {
  SCOPED_TRACE("block_m " + std::to_string(kBlockM));
  constexpr Plan kPlan = Choice<kOperands, kBlockM>::kPlan;
  EXPECT_EQ(what_is_wrong(kPlan), nullptr);
  EXPECT_EQ(sizeof(Stage<kPlan>), static_cast<std::size_t>(stage_bytes(kPlan)));
  EXPECT_EQ(sizeof(Stage<kPlan>) % 1024, 0U) << "swizzled tiles start at multiples of 1024";
  EXPECT_EQ(offsetof(SharedStorage<kPlan>, stages), 0U);
  const int end = shared_tail(sizeof(SharedStorage<kPlan>), kWidestProblem).end;
  EXPECT_LE(end, kSharedMemoryLimit);
  EXPECT_GT(end + static_cast<int>(sizeof(Stage<kPlan>)), kSharedMemoryLimit)
      << "one more would fit";
}

template <Operands kOperands>
void expect_all_fit() {
  expect_fits<kOperands, 8>();
  expect_fits<kOperands, 16>();
  expect_fits<kOperands, 32>();
  expect_fits<kOperands, 64>();
  expect_fits<kOperands, 96>();
  expect_fits<kOperands, 128>();
  expect_fits<kOperands, 160>();
}

// The arithmetic of stages against sizeof, and every kernel against a CTA's shared memory.
TEST(Plan, SharedMemoryIsWhatItsArithmeticSays) {
  expect_all_fit<Operands::kFloat8>();
  expect_all_fit<Operands::kBfloat16>();
}

TEST(Plan, RegistersFitTheLaunch) {
  for (const int block_m : kBlockSizes) {
    const Plan plan = without_stages(Operands::kFloat8, block_m);
    EXPECT_LE(plan.registers.issue * 128 + plan.registers.math * plan.math_threads(),
              plan.launch_registers() * plan.threads());
    EXPECT_LE(plan.launch_registers() * plan.threads(), kRegisterFile);
  }
}

TEST(Plan, SaysWhatIsWrong) {
  const Plan good = without_stages(Operands::kFloat8, 32);
  EXPECT_EQ(what_is_wrong(good), nullptr);
  const auto broken = [&](auto change) {
    Plan plan = good;
    change(plan);
    return std::string(what_is_wrong(plan) == nullptr ? "" : what_is_wrong(plan));
  };
  EXPECT_NE(broken([](Plan& p) { p.block_m = 12; }).find("block_m"), std::string::npos);
  EXPECT_NE(broken([](Plan& p) { p.stages = 1; }).find("stages"), std::string::npos);
  EXPECT_NE(broken([](Plan& p) { p.math_warpgroups = 3; }).find("math_warpgroups"),
            std::string::npos);
  EXPECT_NE(broken([](Plan& p) { p.registers.math = 200; }).find("registers"), std::string::npos);
}

}  // namespace
}  // namespace megamoe::sm90
