#include "files/weight_source.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "megamoe/error.hpp"
#include "reference/layer_reference.hpp"
#include "small_layer.hpp"

namespace megamoe {
namespace {

// Copies each expert into the caller's scratch, as a source does that has to convert.
class CopyingSource : public WeightSource {
 public:
  CopyingSource(const SmallLayer& layer, int broken_expert)
      : WeightSource({.description = "a copy in memory",
                      .files = {},
                      .experts = layer.problem.experts,
                      .hidden = layer.problem.hidden,
                      .intermediate = layer.problem.intermediate,
                      .has_biases = layer.problem.has_biases,
                      .suggested_activation = {}}),
        layer_(layer),
        broken_expert_(broken_expert) {}

  WeightView expert(int expert, ExpertScratch& scratch) const override {
    if (expert == broken_expert_) throw Error(ErrorCode::kBadFile, "expert 1 is broken");
    ++held_;
    const WeightView from = layer_.weights().expert(expert, layer_.problem);
    const WeightView to = layer_.weights().expert(expert + 1, layer_.problem);
    scratch.linear1.assign(from.linear1, to.linear1);
    scratch.linear1_scale.assign(from.linear1_scale, to.linear1_scale);
    scratch.linear2.assign(from.linear2, to.linear2);
    scratch.linear2_scale.assign(from.linear2_scale, to.linear2_scale);
    scratch.linear1_bias.assign(from.linear1_bias, to.linear1_bias);
    scratch.linear2_bias.assign(from.linear2_bias, to.linear2_bias);
    return {.linear1 = scratch.linear1.data(),
            .linear1_scale = scratch.linear1_scale.data(),
            .linear2 = scratch.linear2.data(),
            .linear2_scale = scratch.linear2_scale.data(),
            .linear1_bias = scratch.linear1_bias.data(),
            .linear2_bias = scratch.linear2_bias.data()};
  }
  void release(int /*expert*/) const override { --held_; }

  // Fetched and not yet released.
  int held() const { return held_; }

 private:
  mutable std::atomic<int> held_ = 0;
  const SmallLayer& layer_;
  int broken_expert_;
};

constexpr int kNoneIsBroken = -1;

SmallLayer layer_with_biases() {
  SmallLayer layer({.experts = 3,
                    .topk = 4,
                    .hidden = 64,
                    .intermediate = 96,
                    .has_biases = true,
                    .activation = {}},
                   40);
  layer.randomize(21);
  return layer;
}

TEST(ReferenceFromASource, EqualsTheReferenceFromAViewAndReleasesEveryExpert) {
  const SmallLayer layer = layer_with_biases();
  const CopyingSource source(layer, kNoneIsBroken);
  for (const int num_threads : {1, 4}) {
    const ReferenceOutput output =
        reference_forward(layer.problem, source, layer.tokens(), {.num_threads = num_threads});
    EXPECT_EQ(output.y, layer.run().y);
    EXPECT_EQ(source.held(), 0);
  }
}

TEST(ReferenceFromASource, WhatAThreadThrowsReachesTheCaller) {
  const SmallLayer layer = layer_with_biases();
  const CopyingSource source(layer, 1);
  for (const int num_threads : {1, 4}) {
    try {
      reference_forward(layer.problem, source, layer.tokens(), {.num_threads = num_threads});
      ADD_FAILURE() << "expert 1 was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadFile);
      EXPECT_STREQ(error.what(), "expert 1 is broken");
    }
  }
}

TEST(ReferenceFromASource, BiasesThatTheProblemDeniesAreRefused) {
  SmallLayer layer = layer_with_biases();
  const CopyingSource source(layer, kNoneIsBroken);
  layer.problem.has_biases = false;
  EXPECT_THROW(reference_forward(layer.problem, source, layer.tokens()), Error);
}

}  // namespace
}  // namespace megamoe
