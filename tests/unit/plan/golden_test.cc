// Plans of well-known layers as text. A rule that changes shows here what it changes; after a look
// at the difference, tests/golden/update.sh accepts it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "plan/explain.hpp"
#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

struct Layer {
  const char* name;
  Problem problem;
};

const std::array<Layer, 5> kLayers = {{
    {"flash", {.experts = 256, .topk = 6, .hidden = 4096, .intermediate = 2048}},
    {"v3", {.experts = 256, .topk = 8, .hidden = 7168, .intermediate = 2048}},
    {"pro", {.experts = 384, .topk = 6, .hidden = 7168, .intermediate = 3072}},
    {"gpt-oss-120b",
     {.experts = 128,
      .topk = 4,
      .hidden = 2880,
      .intermediate = 2880,
      .has_biases = true,
      .activation = {.kind = ActivationKind::kSwigluOai}}},
    {"qwen3-30b", {.experts = 128, .topk = 8, .hidden = 2048, .intermediate = 768}},
}};

std::string plans_of(const Layer& layer, MachineKind machine) {
  std::string text;
  for (const int tokens : {1, 32, 512, 8192}) {
    Problem problem = layer.problem;
    problem.ranks = machine == MachineKind::kCpu ? 4 : 8;
    problem.capacity = tokens;
    text += explain(choose_plan(problem, usual_limits(machine))) + '\n';
  }
  return text;
}

void compare(const std::string& file, const std::string& text) {
  const std::string path = std::string(GOLDEN_FOLDER) + '/' + file;
  if (std::getenv("MEGAMOE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(std::ofstream(path) << text) << path << " can't be written";
    return;
  }
  std::ifstream in(path);
  ASSERT_TRUE(in) << path << " is missing; tests/golden/update.sh writes it";
  std::ostringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(expected.str(), text) << path << " differs; see tests/golden/update.sh";
}

class Golden : public testing::TestWithParam<std::tuple<Layer, MachineKind>> {};

TEST_P(Golden, PlanIsAsRecorded) {
  const auto& [layer, machine] = GetParam();
  compare(std::string(layer.name) + '-' + std::string(name(machine)) + ".txt",
          plans_of(layer, machine));
}

INSTANTIATE_TEST_SUITE_P(Layers,
                         Golden,
                         testing::Combine(testing::ValuesIn(kLayers), testing::ValuesIn(kMachines)),
                         [](const auto& instance) {
                           std::string label = std::string(std::get<0>(instance.param).name) + '_' +
                                               std::string(name(std::get<1>(instance.param)));
                           std::replace(label.begin(), label.end(), '-', '_');
                           return label;
                         });

TEST(GoldenOfJson, FlashOnTheCpuIsAsRecorded) {
  Problem problem = kLayers[0].problem;
  problem.ranks = 4;
  problem.capacity = 512;
  compare("flash-cpu.json", to_json(choose_plan(problem, cpu(4))).dump(2) + '\n');
}

}  // namespace
}  // namespace megamoe::test
