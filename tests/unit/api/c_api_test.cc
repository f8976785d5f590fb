#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "megamoe/megamoe.h"
#include "trial.hpp"

// The C interface: what it computes is what the C++ one does, and nothing that a caller hands it
// wrongly ends in a crash.

namespace megamoe {
namespace {

megamoe_problem small_problem(int ranks) {
  const Problem p = Trial::small(ranks);
  megamoe_problem c = MEGAMOE_PROBLEM_INIT;
  c.ranks = p.ranks;
  c.experts = p.experts;
  c.topk = p.topk;
  c.hidden = p.hidden;
  c.intermediate = p.intermediate;
  c.capacity = p.capacity;
  return c;
}

/// A group and a layer of one rank, given back at the end.
class OneRank : public testing::Test {
 protected:
  OneRank() {
    const megamoe_problem problem = small_problem(1);
    megamoe_layer_options options = MEGAMOE_LAYER_OPTIONS_INIT;
    options.machine = "cpu";
    EXPECT_EQ(megamoe_group_in_process(1, &group_), MEGAMOE_OK);
    EXPECT_EQ(megamoe_layer_create(group_, &problem, &options, &layer_), MEGAMOE_OK)
        << megamoe_last_error();
  }
  ~OneRank() override {
    megamoe_layer_destroy(layer_);
    megamoe_group_destroy(group_);
  }

  megamoe_group* group_ = nullptr;
  megamoe_layer* layer_ = nullptr;
};

/// All ones, for every expert.
void set_experts(megamoe_layer* layer, int experts) {
  const std::vector<std::uint8_t> codes(2 * 96 * 64 / 2, 0x22);
  const std::vector<std::uint8_t> scales(2 * 96 * 64 / 32, 120);
  megamoe_weights weights = MEGAMOE_WEIGHTS_INIT;
  weights.linear1 = weights.linear2 = codes.data();
  weights.linear1_scale = weights.linear2_scale = scales.data();
  for (int expert = 0; expert < experts; ++expert)
    ASSERT_EQ(megamoe_layer_set_expert(layer, expert, &weights), MEGAMOE_OK)
        << megamoe_last_error();
}

void set_ones(megamoe_layer* layer, int tokens) {
  const std::vector<std::uint16_t> rows(static_cast<std::size_t>(tokens) * 64, 0x3F80);
  megamoe_tokens given = MEGAMOE_TOKENS_INIT;
  given.num_tokens = tokens;
  given.rows = rows.data();
  ASSERT_EQ(megamoe_layer_set_tokens(layer, &given), MEGAMOE_OK) << megamoe_last_error();
  megamoe_inputs inputs = MEGAMOE_INPUTS_INIT;
  ASSERT_EQ(megamoe_layer_inputs(layer, &inputs), MEGAMOE_OK) << megamoe_last_error();
  std::vector<std::int64_t> ids;
  for (int pair = 0; pair < tokens * 2; ++pair)
    ids.push_back(pair % 2);
  const std::vector<float> routing_weights(ids.size(), 0.5F);
  megamoe_routing routing = MEGAMOE_ROUTING_INIT;
  routing.num_tokens = tokens;
  routing.ids = ids.data();
  routing.weights = routing_weights.data();
  ASSERT_EQ(megamoe_layer_set_routing(layer, &routing), MEGAMOE_OK) << megamoe_last_error();
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), inputs.topk_ids));
  megamoe_quantized_tokens quantized = MEGAMOE_QUANTIZED_TOKENS_INIT;
  quantized.num_tokens = tokens;
  EXPECT_EQ(megamoe_layer_set_quantized_tokens(layer, &quantized), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "codes is null");
  megamoe_stream_call call = MEGAMOE_STREAM_CALL_INIT;
  EXPECT_EQ(megamoe_layer_enqueue(layer, &call), MEGAMOE_INVALID_ARGUMENT) << "on a CPU";
  EXPECT_EQ(megamoe_layer_wait(layer, nullptr, nullptr), MEGAMOE_INVALID_ARGUMENT) << "on a CPU";
}

/// y[0][0] of ones through layers of ones, on the C++ side.
std::uint16_t expected_cell() {
  auto groups = Group::in_process(1);
  Layer layer(groups[0], Trial::small(1), test_options());
  const std::vector<std::uint8_t> codes(2 * 96 * 64 / 2, 0x22);
  const std::vector<std::uint8_t> scales(2 * 96 * 64 / 32, 120);
  for (int expert = 0; expert < 2; ++expert)
    layer.set_expert(expert,
                     {codes.data(), scales.data(), codes.data(), scales.data(), nullptr, nullptr});
  const std::vector<std::uint16_t> row(64, 0x3F80);
  layer.set_tokens(0, 1, row.data());
  const LayerInputs in = layer.inputs();
  for (std::size_t k = 0; k < 2; ++k) {
    in.topk_ids[k] = static_cast<std::int64_t>(k);
    in.topk_weights[k] = 0.5F;
  }
  std::vector<std::uint16_t> y(64);
  layer.forward({1, y.data()});
  return y[0];
}

TEST_F(OneRank, ForwardComputesWhatTheCppInterfaceDoes) {
  set_experts(layer_, 2);
  set_ones(layer_, 5);
  std::vector<std::uint16_t> y(5 * 64);
  std::uint32_t rows[2] = {};
  megamoe_forward arguments = MEGAMOE_FORWARD_INIT;
  arguments.num_tokens = 5;
  arguments.output = y.data();
  megamoe_report report = MEGAMOE_REPORT_INIT;
  report.expert_rows = rows;
  ASSERT_EQ(megamoe_layer_forward(layer_, &arguments, &report), MEGAMOE_OK) << megamoe_last_error();
  const std::uint16_t cell = expected_cell();
  EXPECT_NE(cell, 0);
  EXPECT_EQ(y, std::vector<std::uint16_t>(5 * 64, cell));
  EXPECT_EQ(rows[0], 5U);
  EXPECT_EQ(rows[1], 5U);
  EXPECT_EQ(report.bytes_pulled, 0U);
  EXPECT_GT(report.total_ms, 0);
  EXPECT_STREQ(megamoe_last_error(), "");
}

TEST_F(OneRank, ARefusalIsAStatusAndASentence) {
  set_experts(layer_, 2);
  megamoe_forward arguments = MEGAMOE_FORWARD_INIT;
  arguments.num_tokens = 25;
  EXPECT_EQ(megamoe_layer_forward(layer_, &arguments, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "num_tokens is 25 on rank 0; the layer was made for 0 to 24");
}

TEST_F(OneRank, PlansAreTextAndJsonOfAnyRoom) {
  std::size_t bytes = 0;
  ASSERT_EQ(megamoe_layer_plan(layer_, MEGAMOE_PLAN_TEXT, nullptr, &bytes), MEGAMOE_OK);
  std::string text(bytes, 'x');
  ASSERT_EQ(megamoe_layer_plan(layer_, MEGAMOE_PLAN_TEXT, text.data(), &bytes), MEGAMOE_OK);
  EXPECT_EQ(text.find('\0'), bytes - 1);
  char little[6] = "xxxxx";
  bytes = 4;
  ASSERT_EQ(megamoe_layer_plan(layer_, MEGAMOE_PLAN_TEXT, little, &bytes), MEGAMOE_OK);
  EXPECT_EQ(std::string(little), text.substr(0, 3));
  EXPECT_EQ(little[4], 'x');
  const megamoe_problem problem = small_problem(4);
  std::string json(65'536, '\0');
  bytes = json.size();
  ASSERT_EQ(megamoe_plan(&problem, MEGAMOE_PLAN_JSON, json.data(), &bytes), MEGAMOE_OK);
  EXPECT_EQ(json.front(), '{');
  EXPECT_EQ(megamoe_plan(&problem, 7, nullptr, &bytes), MEGAMOE_INVALID_ARGUMENT);
}

// M4
TEST_F(OneRank, AHandleThatWasGivenBackIsRefused) {
  megamoe_layer* sibling = nullptr;
  ASSERT_EQ(megamoe_layer_sibling(layer_, &sibling), MEGAMOE_OK) << megamoe_last_error();
  megamoe_layer_destroy(sibling);
  megamoe_layer_destroy(sibling);
  EXPECT_EQ(megamoe_layer_reset(sibling), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "the layer was destroyed, or never made");
  megamoe_group_destroy(group_);
  EXPECT_EQ(megamoe_group_rank(group_), -1);
  EXPECT_EQ(megamoe_layer_reset(layer_), MEGAMOE_OK) << "layers outlive their group";
}

TEST_F(OneRank, EveryNullIsRefusedByName) {
  const megamoe_problem problem = small_problem(1);
  EXPECT_EQ(megamoe_group_in_process(1, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "groups is null");
  megamoe_group* group = nullptr;
  EXPECT_EQ(megamoe_group_processes(nullptr, &group), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "megamoe_place is null");
  const megamoe_place place = MEGAMOE_PLACE_INIT;
  EXPECT_EQ(megamoe_group_processes(&place, &group), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "name of megamoe_place is null");
  EXPECT_EQ(megamoe_group_processes(&place, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_group_from_environment(1, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_group_rank(nullptr), -1);
  EXPECT_EQ(megamoe_group_ranks(nullptr), -1);
  megamoe_group_destroy(nullptr);
  megamoe_layer* layer = nullptr;
  EXPECT_EQ(megamoe_layer_create(nullptr, &problem, nullptr, &layer), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "the group is null");
  EXPECT_EQ(megamoe_layer_create(group_, nullptr, nullptr, &layer), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "megamoe_problem is null");
  EXPECT_EQ(megamoe_layer_create(group_, &problem, nullptr, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_layer_sibling(nullptr, &layer), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_layer_sibling(layer_, nullptr), MEGAMOE_INVALID_ARGUMENT);
  megamoe_layer_destroy(nullptr);
  EXPECT_EQ(megamoe_layer_set_expert(nullptr, 0, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_layer_set_expert(layer_, 0, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(), "megamoe_weights is null");
  EXPECT_EQ(megamoe_layer_inputs(layer_, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_layer_set_tokens(layer_, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_layer_forward(layer_, nullptr, nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_layer_reset(nullptr), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_layer_plan(layer_, MEGAMOE_PLAN_TEXT, nullptr, nullptr),
            MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(megamoe_plan(nullptr, MEGAMOE_PLAN_TEXT, nullptr, nullptr), MEGAMOE_INVALID_ARGUMENT);
}

// A caller of an older header has shorter structures, one of a newer header longer ones.
TEST_F(OneRank, StructuresOfOtherVersions) {
  megamoe_problem problem = small_problem(1);
  megamoe_layer* layer = nullptr;
  problem.limit = -5;  // a field that the old header did not have, so what stands there is noise
  problem.struct_size = offsetof(megamoe_problem, alpha);
  EXPECT_EQ(megamoe_layer_create(group_, &problem, nullptr, &layer), MEGAMOE_OK)
      << megamoe_last_error();
  megamoe_layer_destroy(layer);
  problem.struct_size = sizeof problem + 8;
  EXPECT_EQ(megamoe_layer_create(group_, &problem, nullptr, &layer), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(megamoe_last_error()).substr(0, 33), "struct_size of megamoe_problem is");
  problem.struct_size = 0;
  EXPECT_EQ(megamoe_layer_create(group_, &problem, nullptr, &layer), MEGAMOE_INVALID_ARGUMENT);
}

TEST_F(OneRank, ProblemsThatCanNotBe) {
  megamoe_problem problem = small_problem(1);
  megamoe_layer* layer = nullptr;
  problem.activation = 9;
  EXPECT_EQ(megamoe_layer_create(group_, &problem, nullptr, &layer), MEGAMOE_INVALID_ARGUMENT);
  EXPECT_STREQ(megamoe_last_error(),
               "activation is 9; there are MEGAMOE_SWIGLU (0) and MEGAMOE_SWIGLU_OAI (1)");
  problem = small_problem(1);
  problem.hidden = 33;
  EXPECT_EQ(megamoe_layer_create(group_, &problem, nullptr, &layer), MEGAMOE_INVALID_ARGUMENT);
  problem = small_problem(1);
  megamoe_layer_options options = MEGAMOE_LAYER_OPTIONS_INIT;
  options.machine = "sm100";
  EXPECT_EQ(megamoe_layer_create(group_, &problem, &options, &layer), MEGAMOE_UNSUPPORTED_MACHINE);
  EXPECT_EQ(layer, nullptr);
}

TEST(CApi, TwoRanksAsThreadsAndAnErrorPerThread) {
  megamoe_group* groups[2] = {};
  ASSERT_EQ(megamoe_group_in_process(2, groups), MEGAMOE_OK);
  std::string sentences[2];
  const auto live = [&](int rank) {
    megamoe_problem problem = small_problem(2);
    problem.capacity += rank;
    megamoe_layer* layer = nullptr;
    EXPECT_EQ(megamoe_layer_create(groups[rank], &problem, nullptr, &layer),
              MEGAMOE_INVALID_ARGUMENT);
    sentences[rank] = megamoe_last_error();
  };
  std::thread other(live, 1);
  live(0);
  other.join();
  EXPECT_EQ(sentences[0],
            "ranks 0 and 1 disagree on capacity of the layer: 24 on rank 0, 25 on rank 1");
  EXPECT_EQ(sentences[1], sentences[0]);
  for (megamoe_group* group : groups)
    megamoe_group_destroy(group);
}

TEST(CApi, StatusesHaveNames) {
  EXPECT_STREQ(megamoe_status_name(MEGAMOE_RUN_FAILED), "run failed");
  EXPECT_STREQ(megamoe_status_name(static_cast<megamoe_status>(7)), "unknown status");
  EXPECT_STREQ(megamoe_version(), kVersion);
}

}  // namespace
}  // namespace megamoe
