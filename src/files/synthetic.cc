#include "files/synthetic.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "files/layer_extents.hpp"
#include "files/safetensors_output.hpp"
#include "files/synthetic_streams.hpp"

namespace megamoe {
namespace {

/// Where an expert's matrices go.
struct ExpertPlaces {
  std::uint8_t* linear1;
  std::uint8_t* linear1_scale;
  std::uint8_t* linear2;
  std::uint8_t* linear2_scale;
};

/// Eight bytes per draw, each through `shape`.
template <class Shape>
void fill(const CounterRandom& random, std::size_t count, std::uint8_t* out, Shape shape) {
  for (std::size_t first = 0; first < count; first += 8) {
    std::uint64_t bits = random(first / 8);
    for (std::size_t i = first; i < std::min(first + 8, count); ++i, bits >>= 8)
      out[i] = shape(static_cast<std::uint8_t>(bits));
  }
}

/// E2M1 codes at random have a mean square of 8.6, so that a dot product of this many of them with
/// values of variance 1 is of the order of 1 when they are scaled by 2^-(the value below).
constexpr int scale_exponent(int fan_in) {
  int exponent = 0;
  while ((std::int64_t{1} << 2 * exponent) < std::int64_t{8} * fan_in)
    ++exponent;
  return exponent;
}
static_assert(scale_exponent(4096) == 8 && scale_exponent(2048) == 7);

/// Mostly around the centre, one in 64 four times as large.
void fill_scales(const CounterRandom& random, int fan_in, std::size_t count, std::uint8_t* out) {
  const int centre = Ue8m0::kBias - scale_exponent(fan_in);
  fill(random, count, out, [centre](std::uint8_t bits) {
    const int step = (bits & 3) == 0 ? -1 : (bits & 3) == 1 ? 1 : 0;
    return static_cast<std::uint8_t>(centre + step + ((bits >> 2) == 0 ? 2 : 0));
  });
}

void fill_expert(const SyntheticLayer& layer, int expert, const ExpertPlaces& places) {
  const auto elements =
      static_cast<std::size_t>(layer.hidden) * static_cast<std::size_t>(layer.intermediate);
  const auto as_drawn = [](std::uint8_t bits) { return bits; };
  fill(random_of(layer, Stream::kWeight1, expert), elements, places.linear1, as_drawn);
  fill(random_of(layer, Stream::kWeight2, expert), elements / 2, places.linear2, as_drawn);
  fill_scales(
      random_of(layer, Stream::kScale1, expert), layer.hidden, elements / 16, places.linear1_scale);
  fill_scales(random_of(layer, Stream::kScale2, expert),
              layer.intermediate,
              elements / 32,
              places.linear2_scale);
}

class SyntheticWeights : public WeightSource {
 public:
  SyntheticWeights(const SyntheticLayer& layer, WeightFacts facts)
      : WeightSource(std::move(facts)), layer_(layer) {}

  WeightView expert(int expert, ExpertScratch& scratch) const override {
    const auto elements =
        static_cast<std::size_t>(layer_.hidden) * static_cast<std::size_t>(layer_.intermediate);
    scratch.linear1.resize(elements);
    scratch.linear1_scale.resize(elements / 16);
    scratch.linear2.resize(elements / 2);
    scratch.linear2_scale.resize(elements / 32);
    fill_expert(layer_,
                expert,
                {scratch.linear1.data(),
                 scratch.linear1_scale.data(),
                 scratch.linear2.data(),
                 scratch.linear2_scale.data()});
    WeightView view;
    view.linear1 = scratch.linear1.data();
    view.linear1_scale = scratch.linear1_scale.data();
    view.linear2 = scratch.linear2.data();
    view.linear2_scale = scratch.linear2_scale.data();
    return view;
  }

  void release(int) const override {}

 private:
  SyntheticLayer layer_;
};

}  // namespace

void validate(const SyntheticLayer& layer) {
  const auto require_width = [](const char* field, int width) {
    require_within(field, width, 32, kMaxLinearWidth);
    require(width % 32 == 0,
            ErrorCode::kInvalidArgument,
            field,
            " is ",
            width,
            "; it must be a multiple of 32");
  };
  require_width("hidden", layer.hidden);
  require_width("intermediate", layer.intermediate);
  require_within("experts", layer.experts, 1, kMaxExperts);
  require_within("ranks", layer.ranks, 1, kMaxRanks);
  require(layer.experts % layer.ranks == 0,
          ErrorCode::kInvalidArgument,
          "experts is ",
          layer.experts,
          "; it must be a multiple of ranks, ",
          layer.ranks);
  require_within("topk", layer.topk, 1, std::min(kMaxTopk, layer.experts));
  require_within("tokens", layer.tokens, 0, std::int64_t{kMaxCapacity} * layer.ranks);
}

std::unique_ptr<WeightSource> make_synthetic_weights(const SyntheticLayer& layer) {
  validate(layer);
  WeightFacts facts;
  facts.description = sentence("a synthetic layer of seed ", layer.seed);
  facts.experts = layer.experts;
  facts.hidden = layer.hidden;
  facts.intermediate = layer.intermediate;
  facts.suggested_topk = layer.topk;
  return std::make_unique<SyntheticWeights>(layer, std::move(facts));
}

void write_synthetic_weights(const std::string& path,
                             const SyntheticLayer& layer,
                             const Progress& progress) {
  validate(layer);
  const std::int64_t experts = layer.experts;
  const std::int64_t hidden = layer.hidden;
  const std::int64_t intermediate = layer.intermediate;
  const std::vector<TensorSpec> tensors = {
      {"l1.weight", DataType::kU8, {experts, 2 * intermediate, hidden / 2}},
      {"l1.scale", DataType::kU8, {experts, 2 * intermediate, hidden / kGroupSize}},
      {"l2.weight", DataType::kU8, {experts, hidden, intermediate / 2}},
      {"l2.scale", DataType::kU8, {experts, hidden, intermediate / kGroupSize}}};
  SafetensorsOutput output = SafetensorsOutput::create(path, tensors);
  std::vector<std::span<std::uint8_t>> places;
  std::uint64_t total = 0;
  for (const TensorSpec& tensor : tensors) {
    places.push_back(output.tensor(tensor.name));
    total += places.back().size();
  }
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    std::vector<std::span<std::uint8_t>> parts;
    for (const std::span<std::uint8_t> place : places) {
      const std::size_t bytes = place.size() / static_cast<std::size_t>(experts);
      parts.push_back(place.subspan(static_cast<std::size_t>(expert) * bytes, bytes));
    }
    fill_expert(layer,
                static_cast<int>(expert),
                {parts[0].data(), parts[1].data(), parts[2].data(), parts[3].data()});
    for (const std::span<std::uint8_t> part : parts)
      output.release(part);
    if (progress)
      progress(total / static_cast<std::uint64_t>(experts) * static_cast<std::uint64_t>(expert + 1),
               total);
  }
  output.commit();
}

}  // namespace megamoe
