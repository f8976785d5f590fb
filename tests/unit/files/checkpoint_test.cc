#include "files/checkpoint.hpp"

#include <gtest/gtest.h>

#include "checkpoint_folder.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

const char* const kConfig = R"({"model_type":"qwen3_moe","num_experts":1,"num_experts_per_tok":2})";

std::vector<RawTensor> layer(int number) {
  const std::string stem = "model.layers." + std::to_string(number) + ".mlp.experts.0.";
  const std::string bytes = pattern(32 * 32 * 2, static_cast<unsigned>(number));
  return {{stem + "gate_proj.weight", "BF16", {32, 32}, bytes},
          {stem + "up_proj.weight", "BF16", {32, 32}, bytes},
          {stem + "down_proj.weight", "BF16", {32, 32}, bytes}};
}

std::vector<RawTensor> layers(const std::vector<int>& numbers) {
  std::vector<RawTensor> tensors = {{"model.embed_tokens.weight", "BF16", {1}, "ab"}};
  for (int number : numbers)
    for (const RawTensor& tensor : layer(number))
      tensors.push_back(tensor);
  return tensors;
}

TEST(Checkpoint, IsFoundByFolderIndexAndShard) {
  CheckpointFolder folder;
  folder.config(kConfig);
  folder.sharded(layers({0, 1}), 3);
  for (const std::string& name :
       {std::string(), std::string(CheckpointFolder::kIndex), CheckpointFolder::shard_name(1)})
    EXPECT_EQ(folder.open(1, true, name)->facts().experts, 1) << name;
}

TEST(Checkpoint, IsFoundByItsOnlyFile) {
  CheckpointFolder folder;
  folder.config(kConfig);
  folder.single(layers({0}));
  EXPECT_EQ(folder.open(0, true)->facts().experts, 1);
  EXPECT_EQ(folder.open(0, true, "model.safetensors")->facts().experts, 1);
  // A file beside an index that does not name it is a checkpoint of its own.
  folder.sharded(layers({5}), 2);
  EXPECT_EQ(folder.open(0, true, "model.safetensors")->facts().experts, 1);
  EXPECT_EQ(folder.open(5, true)->facts().experts, 1);
}

TEST(Checkpoint, SaysWhichLayersThereAre) {
  CheckpointFolder folder;
  folder.config(R"({"model_type":"qwen3_moe","num_experts":1,"first_k_dense_replace":3})");
  folder.single(layers({3, 4, 5, 7, 12, 13}));
  expect_says(refusal([&] { folder.open(1, true); }),
              "layer 1 of",
              "is dense (first_k_dense_replace is 3)",
              "3 to 5, 7, 12 to 13");
  expect_says(
      refusal([&] { folder.open(6, true); }), "no experts in layer 6", "3 to 5, 7, 12 to 13");
  expect_says(refusal([&] { folder.open(-1, true); }), "no experts in layer -1");
  expect_says(refusal([&] { open_weights(folder.path(), {}); }), "--layer", "3 to 5, 7, 12 to 13");
  folder.single(layers({}));
  expect_says(refusal([&] { folder.open(0, true); }),
              "no tensor named like model.layers.0.mlp.experts.0.gate_proj.weight");
}

TEST(Checkpoint, RefusesALayerThatIsThereTwice) {
  CheckpointFolder folder;
  folder.config(kConfig);
  auto tensors = layers({0});
  for (RawTensor tensor : layer(0)) {
    tensor.name = "other." + tensor.name;
    tensors.push_back(tensor);
  }
  folder.single(tensors);
  expect_says(refusal([&] { folder.open(0, true); }),
              "layer 0 twice",
              "'model.layers.0'",
              "'other.model.layers.0'");
}

TEST(Checkpoint, RefusesMissingAndLyingShards) {
  CheckpointFolder folder;
  folder.config(kConfig);
  const auto tensors = layers({0});  // embed and up in shard 1, gate and down in shard 2
  folder.sharded(tensors, 2);
  std::filesystem::remove(folder.file(CheckpointFolder::shard_name(1)));
  expect_says(refusal([&] { folder.open(0, true); }),
              "model-00002.safetensors is missing",
              "gate_proj.weight'");

  folder.sharded(tensors, 2);
  std::map<std::string, std::string> swapped;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    swapped[tensors[i].name] = CheckpointFolder::shard_name((i + 1) % 2);
  folder.index(swapped);
  expect_says(refusal([&] { folder.open(0, true); }),
              "model-00001.safetensors has no tensor",
              "the index says");
}

TEST(Checkpoint, RefusesShardsOutsideItsFolder) {
  for (const char* name : {"../secret.safetensors",
                           "/etc/passwd",
                           "sub/model.safetensors",
                           "..",
                           ".",
                           "",
                           "a\\\\b",
                           "a\\u0000b"}) {
    SCOPED_TRACE(name);
    CheckpointFolder folder;
    folder.config(kConfig);
    folder.index({{"model.layers.0.mlp.experts.0.gate_proj.weight", name}});
    expect_says(
        refusal([&] { folder.open(0, true); }), "index.json", "plain file name in the same folder");
  }
}

TEST(Checkpoint, FollowsShardsThatAreLinks) {
  CheckpointFolder folder;
  folder.config(kConfig);
  folder.sharded(layers({0}), 1);
  const std::string shard = folder.file(CheckpointFolder::shard_name(0));
  std::filesystem::rename(shard, folder.file("blob"));
  std::filesystem::create_symlink("blob", shard);
  EXPECT_EQ(folder.open(0, true)->facts().experts, 1);
}

TEST(Checkpoint, RefusesJsonThatIsNot) {
  CheckpointFolder folder;
  expect_says(refusal([&] { folder.open(0); }), "config.json", "which a checkpoint needs");
  const auto with_config = [&](const std::string& json) {
    folder.config(json);
    return refusal([&] { folder.open(0); });
  };
  expect_says(with_config("{"), "config.json is not JSON");
  expect_says(with_config("[]"), "config.json is not a JSON object");
  expect_says(with_config("{}"),
              "model_type is missing",
              "gpt_oss, deepseek_v4, deepseek_v3, kimi_k2, qwen3_moe");
  expect_says(with_config(R"({"model_type":"llama"})"), "model_type is 'llama'", "known are");
  expect_says(with_config(R"({"model_type":7,"text_config":[]})"), "model_type is missing");
  expect_says(with_config("{\"a\":" + std::string(100'000, '[')), "nested deeper than 64");
  expect_says(with_config(R"({"model_type":"gpt_oss","hidden_size":"x"})"),
              "hidden_size is '\"x\"'");
  expect_says(with_config(R"({"model_type":"gpt_oss","hidden_size":2.5})"),
              "hidden_size is '2.5'",
              "an integer");
  expect_says(with_config(R"({"model_type":"gpt_oss","num_local_experts":18446744073709551615})"),
              "must be an integer from 1 to 1024");
  expect_says(with_config(R"({"model_type":"gpt_oss","num_experts_per_tok":-3})"),
              "num_experts_per_tok is '-3'");
  expect_says(with_config(R"({"model_type":"gpt_oss","swiglu_limit":-1})"),
              "swiglu_limit is '-1'",
              "at least 0");
  folder.config(kConfig);
  expect_says(refusal([&] { folder.open(0); }),
              "has neither model.safetensors.index.json nor model.safetensors");
  const auto with_index = [&](const std::string& json) {
    write_file(folder.file(CheckpointFolder::kIndex), json);
    return refusal([&] { folder.open(0); });
  };
  expect_says(with_index("nonsense"), "index.json is not JSON");
  expect_says(with_index("{}"), "has no weight_map");
  expect_says(with_index(R"({"weight_map":[]})"), "has no weight_map");
  expect_says(with_index(R"({"weight_map":{"t":1}})"), "'t' has no file name");
}

}  // namespace
}  // namespace megamoe::testing
