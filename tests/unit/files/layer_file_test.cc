#include <gtest/gtest.h>

#include "files/weight_source.hpp"
#include "raw_file.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

constexpr int kExperts = 3, kHidden = 64, kIntermediate = 96;
constexpr std::size_t kElements = std::size_t{kHidden} * kIntermediate;

/// A layer of these sizes in the plain form: U8 throughout, no biases.
std::vector<RawTensor> plain_layer() {
  return {{"l1.weight",
           "U8",
           {kExperts, 2 * kIntermediate, kHidden / 2},
           pattern(kExperts * kElements, 1)},
          {"l1.scale",
           "U8",
           {kExperts, 2 * kIntermediate, kHidden / 32},
           pattern(kExperts * kElements / 16, 2)},
          {"l2.weight",
           "U8",
           {kExperts, kHidden, kIntermediate / 2},
           pattern(kExperts * kElements / 2, 3)},
          {"l2.scale",
           "U8",
           {kExperts, kHidden, kIntermediate / 32},
           pattern(kExperts * kElements / 32, 4)}};
}

class LayerFile : public ::testing::Test {
 protected:
  std::unique_ptr<WeightSource> open(const std::vector<RawTensor>& tensors, int shift = 0) {
    write_file(path(), raw_safetensors(tensors, shift));
    return open_weights(path(), {});
  }
  std::string refused(const std::vector<RawTensor>& tensors) {
    return refusal([&] { open(tensors); });
  }
  std::string path() const { return folder_.file("w.safetensors"); }

 private:
  ScratchFolder folder_;
};

/// Slice `expert` of a plain tensor's bytes.
std::string slice_of(const RawTensor& tensor, int expert) {
  const std::size_t bytes = tensor.bytes.size() / kExperts;
  return tensor.bytes.substr(static_cast<std::size_t>(expert) * bytes, bytes);
}

void expect_codes_and_scales(const WeightSource& source, const std::vector<RawTensor>& plain) {
  ExpertScratch scratch;
  for (int expert = 0; expert < kExperts; ++expert) {
    const WeightView view = source.expert(expert, scratch);
    EXPECT_EQ(as_bytes(view.linear1, kElements), slice_of(plain[0], expert));
    EXPECT_EQ(as_bytes(view.linear1_scale, kElements / 16), slice_of(plain[1], expert));
    EXPECT_EQ(as_bytes(view.linear2, kElements / 2), slice_of(plain[2], expert));
    EXPECT_EQ(as_bytes(view.linear2_scale, kElements / 32), slice_of(plain[3], expert));
    source.release(expert);
  }
}

TEST_F(LayerFile, GivesTheFilesOwnBytesWithoutACopy) {
  const auto plain = plain_layer();
  const auto source = open(plain);
  EXPECT_EQ(source->facts().experts, kExperts);
  EXPECT_EQ(source->facts().hidden, kHidden);
  EXPECT_EQ(source->facts().intermediate, kIntermediate);
  EXPECT_FALSE(source->facts().has_biases);
  expect_codes_and_scales(*source, plain);
  ExpertScratch scratch;
  const WeightView view = source->expert(0, scratch);
  EXPECT_TRUE(scratch.linear1.empty() && scratch.linear1_scale.empty() && scratch.linear2.empty());
  EXPECT_EQ(view.linear1_bias, nullptr);
}

TEST_F(LayerFile, TakesF4ByElementShapeAndF8E8M0) {
  const auto plain = plain_layer();
  auto tensors = plain;
  tensors[0].type = tensors[2].type = "F4";
  tensors[0].shape[2] = kHidden;
  tensors[2].shape[2] = kIntermediate;
  tensors[1].type = tensors[3].type = "F8_E8M0";
  expect_codes_and_scales(*open(tensors, 3), plain);
}

TEST_F(LayerFile, ExpandsScalesOf32x32Blocks) {
  auto tensors = plain_layer();
  auto plain = tensors;
  for (const std::size_t which : {1U, 3U}) {
    const auto rows = static_cast<std::size_t>(tensors[which].shape[1]);
    const auto groups = static_cast<std::size_t>(tensors[which].shape[2]);
    tensors[which].shape[1] /= 32;
    tensors[which].bytes = pattern(kExperts * rows / 32 * groups, 5);
    for (std::size_t expert = 0; expert < kExperts; ++expert)
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t group = 0; group < groups; ++group)
          plain[which].bytes[(expert * rows + row) * groups + group] =
              tensors[which].bytes[(expert * (rows / 32) + row / 32) * groups + group];
  }
  expect_codes_and_scales(*open(tensors), plain);
}

TEST_F(LayerFile, ReadsBiasesOfBothTypesAtAnyAlignment) {
  std::vector<float> bias1;
  std::vector<std::uint16_t> bias2;
  for (int i = 0; i < kExperts * 2 * kIntermediate; ++i)
    bias1.push_back(0.25F * static_cast<float>(i));
  for (int i = 0; i < kExperts * kHidden; ++i)
    bias2.push_back(static_cast<std::uint16_t>(0x3F80 + i));
  auto tensors = plain_layer();
  tensors.push_back({"l1.bias", "F32", {kExperts, 2 * kIntermediate}, raw(bias1)});
  tensors.push_back({"l2.bias", "BF16", {kExperts, kHidden}, raw(bias2)});
  for (int shift = 0; shift < 4; ++shift) {
    SCOPED_TRACE(shift);
    const auto source = open(tensors, shift);
    EXPECT_TRUE(source->facts().has_biases);
    ExpertScratch scratch;
    const WeightView view = source->expert(2, scratch);
    for (std::size_t i = 0; i < 2 * kIntermediate; ++i)
      ASSERT_EQ(view.linear1_bias[i], bias1[std::size_t{2} * 2 * kIntermediate + i]);
    for (std::size_t i = 0; i < kHidden; ++i)
      ASSERT_EQ(view.linear2_bias[i], to_float(Bfloat16{bias2[std::size_t{2} * kHidden + i]}));
  }
}

TEST_F(LayerFile, OneBiasAloneStandsWithZerosForTheOther) {
  auto tensors = plain_layer();
  tensors.push_back(
      {"l2.bias", "F32", {kExperts, kHidden}, raw(std::vector<float>(kExperts * kHidden, 1.5F))});
  ExpertScratch scratch;
  const auto source = open(tensors);
  const WeightView view = source->expert(1, scratch);
  EXPECT_EQ(std::vector<float>(view.linear1_bias, view.linear1_bias + 2 * kIntermediate),
            std::vector<float>(2 * kIntermediate, 0.0F));
  EXPECT_EQ(view.linear2_bias[0], 1.5F);
}

TEST_F(LayerFile, RefusesEachLieWithTensorAxisValueAndBound) {
  const auto with = [](std::size_t which,
                       const std::string& type,
                       std::vector<std::int64_t> shape,
                       std::size_t bytes) {
    auto tensors = plain_layer();
    tensors[which] = {tensors[which].name, type, std::move(shape), std::string(bytes, '\0')};
    return tensors;
  };
  expect_says(refused(with(0, "F32", {3, 192, 32}, 73'728)), "'l1.weight'", "is F32", "U8 or F4");
  expect_says(refused(with(0, "U8", {3, 192}, 576)), "'l1.weight'", "[3,192]", "3 axes");
  expect_says(refused(with(0, "U8", {3, 192, 31}, 17'856)), "hidden size 62", "multiple of 32");
  expect_says(
      refused(with(0, "U8", {3, 190, 32}, 18'240)), "intermediate size 95", "multiple of 32");
  expect_says(refused(with(0, "U8", {3, 191, 32}, 18'336)), "191 rows", "must be even");
  expect_says(refused(with(0, "U8", {0, 192, 32}, 0)), "0 experts", "1 to 1024");
  expect_says(refused(with(0, "U8", {1025, 64, 16}, 1'049'600)), "1025 experts", "1 to 1024");
  expect_says(refused(with(0, "U8", {3, 0, 32}, 0)), "intermediate size 0");
  expect_says(refused(with(1, "F32", {3, 192, 2}, 4608)), "'l1.scale'", "is F32", "U8 or F8_E8M0");
  expect_says(refused(with(1, "U8", {3, 192, 3}, 1728)),
              "'l1.scale'",
              "axis 2 (columns / 32) is 3",
              "must be 2");
  expect_says(
      refused(with(1, "U8", {3, 7, 2}, 42)), "'l1.scale'", "axis 1 (rows) is 7", "must be 192");
  expect_says(
      refused(with(1, "U8", {2, 6, 2}, 24)), "'l1.scale'", "axis 0 (experts) is 2", "must be 3");
  expect_says(refused(with(2, "U8", {3, 32, 48}, 4608)),
              "'l2.weight'",
              "axis 1 (hidden size) is 32",
              "must be 64");
  expect_says(refused(with(2, "U8", {3, 64, 64}, 12'288)),
              "'l2.weight'",
              "axis 2 (intermediate size / 2) is 64",
              "must be 48");
  expect_says(refused(with(2, "U8", {2, 64, 48}, 6144)), "'l2.weight'", "axis 0 (experts) is 2");
  expect_says(refused(with(3, "U8", {3, 64, 2}, 384)), "'l2.scale'", "axis 2", "must be 3");
  auto tensors = plain_layer();
  tensors.push_back({"l1.bias", "F32", {3, 96}, std::string(1152, '\0')});
  expect_says(refused(tensors), "'l1.bias'", "axis 1 (rows) is 96", "must be 192");
  tensors.back() = {"l1.biases", "F32", {3, 192}, std::string(2304, '\0')};
  expect_says(refused(tensors), "'l1.biases'", "is unknown");
  tensors = plain_layer();
  tensors.erase(tensors.begin() + 3);
  expect_says(refused(tensors), "has no tensor 'l2.scale'", "'l1.weight'");
}

TEST_F(LayerFile, IsNoCheckpoint) {
  open(plain_layer());
  WeightOptions options;
  options.layer = 3;
  expect_says(refusal([&] { open_weights(path(), options); }), "is a layer file", "--layer 3");
  expect_says(refused({{"something", "U8", {1}, "x"}}), "has no l1.weight", "config.json");
}

TEST_F(LayerFile, ThatShrinksIsRefusedAtTheNextExpert) {
  const auto source = open(plain_layer());
  std::filesystem::resize_file(path(), 1000);
  ExpertScratch scratch;
  expect_says(refusal([&] { source->expert(0, scratch); }), "w.safetensors shrank");
}

}  // namespace
}  // namespace megamoe::testing
