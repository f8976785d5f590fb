#include "files/synthetic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "files/counter_random.hpp"
#include "files/input_file.hpp"
#include "files/model_shapes.hpp"
#include "raw_file.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

SyntheticLayer small_layer() {
  SyntheticLayer layer;
  layer.hidden = 64;
  layer.intermediate = 96;
  layer.experts = 6;
  layer.topk = 4;
  layer.tokens = 301;
  layer.ranks = 2;
  layer.seed = 42;
  return layer;
}

std::uint64_t fnv(const std::string& bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (char byte : bytes)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  return hash;
}

TEST(Synthetic, FilesAreTheSameOnEveryMachine) {
  // The hashes are the promise: who changes them changes what a seed means for everyone.
  const ScratchFolder folder;
  write_synthetic_weights(folder.file("w"), small_layer(), {});
  write_synthetic_input(folder.file("x"), small_layer(), {});
  EXPECT_EQ(fnv(read_file(folder.file("w"))), 16779752572768555149U);
  EXPECT_EQ(fnv(read_file(folder.file("x"))), 10931853107727384327U);
}

TEST(Synthetic, TheFileAndTheSourceAreOneLayer) {
  const ScratchFolder folder;
  std::vector<std::uint64_t> steps;
  std::uint64_t last_total = 0;
  write_synthetic_weights(
      folder.file("w"), small_layer(), [&](std::uint64_t done, std::uint64_t total) {
        steps.push_back(done);
        last_total = total;
      });
  EXPECT_EQ(steps.size(), 6U);
  EXPECT_EQ(steps.back(), last_total);
  const auto from_file = open_weights(folder.file("w"), {});
  const auto direct = make_synthetic_weights(small_layer());
  EXPECT_EQ(direct->facts().experts, from_file->facts().experts);
  const std::size_t elements = 64 * 96;
  std::set<std::string> different;
  for (int expert = 0; expert < 6; ++expert) {
    ExpertScratch scratch_a, scratch_b;
    const WeightView a = from_file->expert(expert, scratch_a),
                     b = direct->expert(expert, scratch_b);
    EXPECT_EQ(as_bytes(a.linear1, elements), as_bytes(b.linear1, elements));
    EXPECT_EQ(as_bytes(a.linear1_scale, elements / 16), as_bytes(b.linear1_scale, elements / 16));
    EXPECT_EQ(as_bytes(a.linear2, elements / 2), as_bytes(b.linear2, elements / 2));
    EXPECT_EQ(as_bytes(a.linear2_scale, elements / 32), as_bytes(b.linear2_scale, elements / 32));
    different.insert(as_bytes(a.linear1, elements));
    different.insert(as_bytes(a.linear2, elements / 2));
  }
  EXPECT_EQ(different.size(), 12U);
}

TEST(Synthetic, AnotherSeedIsAnotherLayer) {
  SyntheticLayer other = small_layer();
  other.seed = 43;
  ExpertScratch a, b;
  make_synthetic_weights(small_layer())->expert(0, a);
  make_synthetic_weights(other)->expert(0, b);
  EXPECT_NE(a.linear1, b.linear1);
  EXPECT_NE(a.linear1_scale, b.linear1_scale);
}

TEST(Synthetic, DotProductsAreOfTheOrderOf1ForEveryShape) {
  for (const auto& [hidden, intermediate] :
       {std::pair{4096, 2048}, {7168, 3072}, {2880, 2880}, {2048, 768}, {64, 32}}) {
    SyntheticLayer layer = small_layer();
    layer.hidden = hidden;
    layer.intermediate = intermediate;
    ExpertScratch scratch;
    const WeightView view = make_synthetic_weights(layer)->expert(0, scratch);
    std::vector<Bfloat16> row(static_cast<std::size_t>(hidden));
    fill_synthetic_row(layer, 3, row.data());
    double squares = 0;
    const auto width = static_cast<std::size_t>(hidden);
    const auto outputs = static_cast<std::size_t>(std::min(intermediate, 256));
    for (std::size_t output = 0; output < outputs; ++output) {
      double sum = 0;
      for (std::size_t k = 0; k < width; ++k) {
        const std::uint8_t pair = view.linear1[output * width / 2 + k / 2];
        const Float4E2M1 code = k % 2 == 0 ? even_float4(pair) : odd_float4(pair);
        sum += static_cast<double>(to_float(code)) *
               to_float(Ue8m0{view.linear1_scale[output * width / 32 + k / 32]}) * to_float(row[k]);
      }
      squares += sum * sum;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(outputs));
    EXPECT_GT(deviation, 0.5) << hidden;
    EXPECT_LT(deviation, 5) << hidden;
  }
}

TEST(Synthetic, RowsAreNearANormalDistributionWithOutlierColumns) {
  SyntheticLayer layer = small_layer();
  layer.hidden = 8192;
  std::vector<Bfloat16> row(8192);
  std::vector<double> squares(8192);
  for (int token = 0; token < 64; ++token) {
    fill_synthetic_row(layer, token, row.data());
    for (std::size_t column = 0; column < 8192; ++column)
      squares[column] += std::pow(to_float(row[column]), 2) / 64;
  }
  int outliers = 0;
  double usual = 0;
  for (double square : squares) {
    if (square > 16)
      ++outliers;
    else
      usual += square;
  }
  EXPECT_GT(outliers, 30);
  EXPECT_LT(outliers, 100);
  EXPECT_NEAR(usual / (8192 - outliers), 1.0, 0.02);
}

TEST(Synthetic, InputFileIsWhatTheReaderTakes) {
  const ScratchFolder folder;
  const SyntheticLayer layer = small_layer();
  write_synthetic_input(folder.file("x"), layer, {});
  const InputFile input(folder.file("x"));
  EXPECT_EQ(input.tokens(), 301);
  EXPECT_EQ(input.hidden(), 64);
  EXPECT_EQ(input.tokens_per_rank(std::nullopt), (std::vector<std::int64_t>{151, 150}));
  std::vector<std::int64_t> ids(301 * 4);
  std::vector<float> weights(301 * 4);
  input.read_routing(0, 301, ids.data(), weights.data());
  for (std::size_t token = 0; token < 301; ++token) {
    const std::set<std::int64_t> distinct(&ids[token * 4], &ids[token * 4] + 4);
    EXPECT_EQ(distinct.size(), 4U);
    EXPECT_GE(*distinct.begin(), 0);
    EXPECT_LT(*distinct.rbegin(), 6);
    float sum = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_GT(weights[token * 4 + k], 0.0F);
      sum += weights[token * 4 + k];
    }
    EXPECT_NEAR(sum, 1.0F, 1e-6F);
  }
}

std::vector<int> counts_of(Routing routing, int experts, int topk) {
  SyntheticLayer layer = small_layer();
  layer.experts = experts;
  layer.topk = topk;
  layer.routing = routing;
  layer.ranks = 1;
  const SyntheticRouting choices(layer);
  std::vector<int> counts(static_cast<std::size_t>(experts));
  std::vector<std::int64_t> ids(static_cast<std::size_t>(topk));
  std::vector<float> weights(static_cast<std::size_t>(topk));
  for (std::int64_t token = 0; token < 4000; ++token) {
    choices.fill(token, ids.data(), weights.data());
    for (std::int64_t id : ids)
      ++counts[static_cast<std::size_t>(id)];
  }
  return counts;
}

TEST(SyntheticRouting, HasTheShapeThatItsNameSays) {
  const std::vector<int> uniform = counts_of(Routing::kUniform, 64, 1);
  for (int count : uniform)
    EXPECT_NEAR(count, 4000 / 64, 40);
  std::vector<int> zipf = counts_of(Routing::kZipf, 64, 1);
  std::sort(zipf.rbegin(), zipf.rend());
  EXPECT_NEAR(zipf[0], 4000 / 4.744, 120);  // 1 / H(64)
  EXPECT_NEAR(zipf[3], 4000 / 4.744 / 4, 60);
  const std::vector<int> hot = counts_of(Routing::kHot, 64, 1);
  EXPECT_NEAR(hot[0] + hot[1] + hot[2] + hot[3], 3000, 120);
}

TEST(SyntheticRouting, EndsWhenEveryExpertMustBeChosen) {
  for (Routing routing : {Routing::kUniform, Routing::kZipf, Routing::kHot})
    for (int experts : {1, 2, 32})
      EXPECT_EQ(counts_of(routing, experts, experts),
                std::vector<int>(static_cast<std::size_t>(experts), 4000));
}

TEST(SyntheticRouting, IsKnownByName) {
  EXPECT_EQ(parse_routing("zipf"), Routing::kZipf);
  expect_says(refusal([] { parse_routing("cold"); }), "routing is 'cold'", "uniform, zipf, hot");
}

TEST(Synthetic, RefusesWhatCanNotBe) {
  const auto refused_with = [](auto change) {
    SyntheticLayer layer = small_layer();
    change(layer);
    return refusal([&] { validate(layer); });
  };
  expect_says(
      refused_with([](SyntheticLayer& l) { l.hidden = 48; }), "hidden is 48", "multiple of 32");
  expect_says(refused_with([](SyntheticLayer& l) { l.intermediate = 0; }), "intermediate is 0");
  expect_says(
      refused_with([](SyntheticLayer& l) { l.experts = 1025; }), "experts is 1025", "1 to 1024");
  expect_says(refused_with([](SyntheticLayer& l) { l.topk = 7; }), "topk is 7", "1 to 6");
  expect_says(
      refused_with([](SyntheticLayer& l) { l.ranks = 4; }), "experts is 6", "multiple of ranks, 4");
  expect_says(refused_with([](SyntheticLayer& l) { l.ranks = 73; }), "ranks is 73");
  expect_says(refused_with([](SyntheticLayer& l) { l.tokens = -1; }), "tokens is -1");
}

TEST(ModelShapes, AreKnownByName) {
  ASSERT_NE(find_model_shape("kimi-k2"), nullptr);
  EXPECT_EQ(find_model_shape("kimi-k2")->experts, 384);
  EXPECT_EQ(find_model_shape("gpt-oss-120b")->hidden, 2880);
  EXPECT_EQ(find_model_shape("nope"), nullptr);
}

TEST(CounterRandom, BelowStaysBelowAndReachesAll) {
  const CounterRandom random(7, 1);
  std::set<std::uint64_t> seen;
  for (std::uint64_t counter = 0; counter < 1000; ++counter)
    seen.insert(random.below(counter, 10));
  EXPECT_EQ(seen.size(), 10U);
  EXPECT_EQ(*seen.rbegin(), 9U);
  EXPECT_NE(CounterRandom(7, 1)(0), CounterRandom(7, 2)(0));
  EXPECT_NE(CounterRandom(7, 1)(0), CounterRandom(8, 1)(0));
}

}  // namespace
}  // namespace megamoe::testing
