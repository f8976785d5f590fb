#include "runtime/gpu/gpu_kind.hpp"

#include <gtest/gtest.h>

#include "machine/sm100/kernel_args.hpp"
#include "machine/sm100/plans.hpp"
#include "megamoe/error.hpp"
#include "plan/choose.hpp"
#include "protocol/schedule.hpp"
#include "runtime/rank_machine.hpp"

// What is decided about GPU machines without a GPU.
namespace megamoe {
namespace {

const CardFacts kH200{
    .name = "NVIDIA H200", .sms = 132, .major = 9, .minor = 0, .memory = 1ULL << 37};
const CardFacts kB200{
    .name = "NVIDIA B200", .sms = 148, .major = 10, .minor = 0, .memory = 1ULL << 37};
const CardFacts kB300{
    .name = "NVIDIA B300", .sms = 148, .major = 10, .minor = 3, .memory = 1ULL << 38};

const GpuKind& kind(const char* name) {
  return *find_gpu_kind(name);
}

template <class Work>
std::string thrown_by(Work work) {
  try {
    work();
    return "nothing";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(GpuKinds, AreKnownByTheirNames) {
  EXPECT_EQ(find_gpu_kind("cpu"), nullptr);
  EXPECT_EQ(find_gpu_kind("sm100-emulate"), nullptr);
  for (const GpuKind& each : kGpuKinds)
    EXPECT_EQ(find_gpu_kind(each.name), &each);
  EXPECT_EQ(machine_names(), "cpu, sm90, sm100 and sm100-emulated");
  LayerOptions options;
  options.machine = "sm80";
  EXPECT_NE(thrown_by([&] { make_machine(options, {}); }).find("there are auto, cpu, sm90, sm100"),
            std::string::npos);
}

// The emulation wants the card that its kernels run on, the machine itself its own.
TEST(GpuKinds, RunOnTheirCardsAlone) {
  const struct {
    const char* name;
    bool h200, b200;
  } cases[] = {{"sm90", true, false}, {"sm100", false, true}, {"sm100-emulated", true, false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(kind(c.name).runs_on(kH200), c.h200);
    EXPECT_EQ(kind(c.name).runs_on(kB200), c.b200);
    EXPECT_FALSE(kind(c.name).runs_on(kB300));
    const CardFacts both[] = {kH200, kB200};
    EXPECT_EQ(why_no_card(kind(c.name), both), "");
  }
  const CardFacts others[] = {kH200, kB300};
  EXPECT_EQ(why_no_card(kind("sm100"), others),
            "machine sm100 finds no card of compute capability 10.0 (Blackwell) here; there is "
            "NVIDIA H200 with 9.0, NVIDIA B300 with 10.3");
}

TEST(GpuKinds, OnlyHopperHasFastNumericsAndIsTakenUnnamed) {
  LayerOptions fast;
  fast.numerics = "fast";
  LayerOptions exact;
  exact.numerics = "exact";
  for (const GpuKind& each : kGpuKinds) {
    const bool is_hopper = each.name == "sm90";
    EXPECT_EQ(each.is_for_auto, is_hopper);
    EXPECT_EQ(thrown_by([&] { require_numerics(each, exact); }), "nothing");
    EXPECT_EQ(thrown_by([&] { require_numerics(each, fast); }),
              is_hopper
                  ? "nothing"
                  : "numerics is fast; the " + std::string(each.name) + " machine has exact only");
  }
}

TEST(GpuKinds, LimitsAreThoseOfTheirKernels) {
  EXPECT_EQ(limits_of_kind(kind("sm90"), 131, {}).workers, 131);
  for (const char* name : {"sm100", "sm100-emulated"}) {
    const Limits limits = limits_of_kind(kind(name), 131, {});
    EXPECT_EQ(limits.machine, MachineKind::kSm100);
    EXPECT_EQ(limits.workers, 130) << "pairs";
    EXPECT_NE(thrown_by([&] { limits_of_kind(kind(name), 1, {}); }).find("pairs of SMs"),
              std::string::npos);
  }
}

// A build with some of the kernels plans with those alone, for any number of rows.
TEST(GpuKinds, PlansKeepToTheKernelsThatAreBuilt) {
  Limits limits = limits_of_kind(kind("sm100"), 148, {});
  const auto all = tiles_with(limits.tiles, [](int) { return true; });
  ASSERT_EQ(all.size(), limits.tiles.size());
  const auto some = tiles_with(limits.tiles, [](int block_m) { return block_m <= 32; });
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some.back().up_to_rows_per_expert, kAnyRows);
  EXPECT_TRUE(tiles_with(limits.tiles, [](int) { return false; }).empty());
  const Problem problem{
      .experts = 4, .topk = 2, .hidden = 512, .intermediate = 256, .capacity = 4096};
  const std::int64_t pool = choose_plan(problem, limits).pool_rows;
  EXPECT_EQ(choose_plan(problem, limits).kernel.block_m, 192);
  limits.tiles = some;
  EXPECT_EQ(choose_plan(problem, limits).kernel.block_m, 32);
  EXPECT_EQ(choose_plan(problem, limits).pool_rows, pool) << "ranks agree on it";
  EXPECT_EQ(choose_plan(problem, limits, {.expected_tokens = 8}).kernel.block_m, 16);
}

// What the plan says of a Blackwell call is what its weights are packed by.
TEST(BlackwellPlans, HaveTheBlocksOfThePackedWeights) {
  const Limits limits = limits_of_kind(kind("sm100"), 148, {});
  for (int hidden = 32; hidden <= 1056; hidden += 32)
    for (const int intermediate : {32, 96, 128, 352, 480, 512}) {
      const Problem problem{
          .experts = 4, .topk = 2, .hidden = hidden, .intermediate = intermediate, .capacity = 64};
      const Plan plan = choose_plan(problem, limits);
      EXPECT_EQ(plan.linear1_blocks, sm100::layout_of(problem, Phase::kLinear1).blocks());
      EXPECT_EQ(plan.linear2_blocks, sm100::layout_of(problem, Phase::kLinear2).blocks());
    }
}

using Walk = Schedule<std::function<int(int)>>;

Walk walk_of(Walk::Shape shape, int worker, int tokens) {
  shape.worker = worker;
  // Experts without rows, and others of several sizes.
  return {shape,
          [tokens](int expert) { return expert % 5 == 4 ? 0 : tokens * (1 + expert % 3) / 4; }};
}

// The two CTAs of a pair always have neighbouring blocks of the same rows, the deal's lead
// included: one instruction multiplies both.
TEST(BlackwellPlans, DealAPairTheTwoHalvesOfItsProducts) {
  for (const int sms : {2, 6, 66, 148})
    for (const int hidden : {256, 512, 4096})
      for (const int tokens : {3, 60, 700}) {
        const Problem problem{
            .experts = 12, .topk = 3, .hidden = hidden, .intermediate = 256, .capacity = tokens};
        const Plan plan = choose_plan(
            problem, limits_of_kind(kind("sm100"), sms, {}), {.expected_tokens = tokens});
        const Ring ring = ring_of(plan);
        EXPECT_GE(ring.linear2_lead, 1);
        const Walk::Shape shape{.ring = ring,
                                .experts = problem.experts,
                                .experts_per_wave = plan.experts_per_wave,
                                .num_workers = plan.workers};
        int blocks = 0;
        for (int leader = 0; leader < plan.workers; leader += sm100::kPairCtas) {
          Walk first = walk_of(shape, leader, tokens);
          Walk second = walk_of(shape, leader + 1, tokens);
          Block a;
          Block b;
          for (; first.next(a); ++blocks) {
            ASSERT_TRUE(second.next(b));
            ASSERT_EQ(a.n % 2, 0);
            ASSERT_EQ(b.n, a.n + 1);
            ASSERT_TRUE(a.phase == b.phase && a.expert == b.expert && a.m == b.m &&
                        a.rows == b.rows);
          }
          ASSERT_FALSE(second.next(b));
        }
        EXPECT_GT(blocks, 0);
      }
}

}  // namespace
}  // namespace megamoe
