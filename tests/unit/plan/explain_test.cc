// What a plan says of itself: a person finds the rules and the bytes, a program finds stable names.
#include "plan/explain.hpp"

#include <gtest/gtest.h>

#include "plan/byte_text.hpp"
#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

TEST(ByteText, IsShort) {
  EXPECT_EQ(byte_text(0), "0 B");
  EXPECT_EQ(byte_text(1023), "1023 B");
  EXPECT_EQ(byte_text(1024), "1 KiB");
  EXPECT_EQ(byte_text(1536), "1.5 KiB");
  EXPECT_EQ(byte_text(3ULL << 30), "3 GiB");
  EXPECT_EQ(byte_text(~std::uint64_t{0}), "16 EiB");
}

TEST(Explain, NamesRuleReasonPoolAndEveryItem) {
  for (const MachineKind machine : kMachines) {
    const Plan plan = choose_plan(pro(8, 512), usual_limits(machine));
    const std::string text = explain(plan);
    EXPECT_EQ(text.rfind("plan for " + std::string(name(machine)), 0), 0U);
    EXPECT_EQ(text.back(), '\n');
    for (const FiredRule& rule : plan.rules) {
      EXPECT_TRUE(contains(text, rule.why)) << rule.why;
      EXPECT_TRUE(contains(text, rule.field));
    }
    for (const PlanItem& item : plan.symmetric_items)
      EXPECT_EQ(contains(text, "  " + std::string(item.name) + ' '), item.bytes > 0) << item.name;
    EXPECT_TRUE(contains(text, std::to_string(plan.pool_rows) + " rows"));
    EXPECT_TRUE(contains(text, std::to_string(plan.symmetric_bytes) + " bytes"));
  }
}

TEST(Explain, TellsTheVariantsOfALayerApart) {
  Problem problem = flash(4, 32);
  EXPECT_TRUE(contains(explain(choose_plan(problem, cpu(4))), "swiglu, no clamp"));
  problem.activation.clamp = 10.0F;
  problem.activation.fast_math = false;
  EXPECT_TRUE(contains(explain(choose_plan(problem, cpu(4))), "swiglu, clamp 10, precise"));
  problem.activation.kind = ActivationKind::kSwigluOai;
  problem.has_biases = true;
  const std::string text = explain(choose_plan(problem, cpu(4)));
  EXPECT_TRUE(contains(text, "swiglu-oai, alpha 1.702, limit 7"));
  EXPECT_TRUE(contains(text, "with biases"));
}

TEST(ToJson, HasStableNames) {
  const Plan plan = choose_plan(flash(4, 512), cpu(4));
  const nlohmann::ordered_json json = to_json(plan);
  for (const char* key : {"machine",
                          "problem",
                          "expected_tokens",
                          "expected_rows",
                          "workers",
                          "padded_hidden",
                          "padded_intermediate",
                          "kernel",
                          "linear1_blocks",
                          "linear2_blocks",
                          "experts_per_wave",
                          "pool_rows",
                          "full_pool_rows",
                          "ring_blocks",
                          "symmetric_budget",
                          "symmetric_bytes",
                          "symmetric_items",
                          "rules"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_FALSE(json.contains("shared_items"));
  EXPECT_EQ(json["machine"], "cpu");
  EXPECT_EQ(json["problem"]["hidden"], 4096);
  EXPECT_TRUE(json["problem"]["clamp"].is_null()) << "JSON has no infinity";
  EXPECT_TRUE(json["symmetric_budget"].is_null());
  EXPECT_FALSE(json["kernel"].contains("stages"));
  EXPECT_EQ(json["rules"][0]["field"], "expected_rows");
  std::uint64_t bytes = 0;
  for (const auto& item : json["symmetric_items"])
    bytes += item["bytes"].get<std::uint64_t>();
  EXPECT_EQ(bytes, json["symmetric_bytes"]);
}

TEST(ToJson, HasTheGpusFieldsAndIsValidJson) {
  Problem problem = flash(4, 512);
  problem.activation.kind = ActivationKind::kSwigluOai;
  const Plan plan = choose_plan(problem, sm100_limits(148), {.byte_budget = 1ULL << 30});
  const auto json = nlohmann::ordered_json::parse(to_json(plan).dump());
  EXPECT_EQ(json["symmetric_budget"], 1ULL << 30);
  EXPECT_EQ(json["kernel"]["stages"], plan.kernel.stages);
  EXPECT_EQ(json["kernel"]["tmem_columns"], plan.kernel.tmem_columns);
  EXPECT_EQ(json["problem"]["alpha"].dump(), "1.702");
  EXPECT_EQ(json["shared_items"].size(), plan.shared_items.size());
}

}  // namespace
}  // namespace megamoe::test
