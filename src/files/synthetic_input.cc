#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/check.hpp"
#include "files/printable.hpp"
#include "files/safetensors_output.hpp"
#include "files/synthetic_streams.hpp"
#include "files/token_split.hpp"

namespace megamoe {
namespace {

struct RoutingName {
  Routing routing;
  std::string_view name;
};
constexpr std::array kRoutings = {RoutingName{Routing::kUniform, "uniform"},
                                  RoutingName{Routing::kZipf, "zipf"},
                                  RoutingName{Routing::kHot, "hot"}};

/// A random order of the experts.
std::vector<int> shuffled_experts(const SyntheticLayer& layer) {
  const CounterRandom random = random_of(layer, Stream::kPopularity);
  std::vector<int> order(static_cast<std::size_t>(layer.experts));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t last = order.size(); last > 1; --last)
    std::swap(order[last - 1], order[random.below(last, last)]);
  return order;
}

/// How often each expert is drawn, as whole numbers that sum to less than 2^32.
std::vector<std::uint64_t> popularity_of(const SyntheticLayer& layer) {
  const auto experts = static_cast<std::size_t>(layer.experts);
  std::vector<std::uint64_t> popularity(experts, 1);
  if (layer.routing == Routing::kZipf) {
    constexpr std::uint64_t kFirst = std::uint64_t{1} << 20;
    const std::vector<int> order = shuffled_experts(layer);
    for (std::size_t place = 0; place < experts; ++place)
      popularity[static_cast<std::size_t>(order[place])] = kFirst / (place + 1);
  }
  if (layer.routing == Routing::kHot && experts > 1) {
    const std::size_t hot = std::max<std::size_t>(1, experts / 16);
    for (std::size_t expert = 0; expert < experts; ++expert)
      popularity[expert] = expert < hot ? 3 * (experts - hot) : hot;
  }
  return popularity;
}

}  // namespace

Routing parse_routing(const std::string& name) {
  std::string known;
  for (const RoutingName& routing : kRoutings) {
    if (routing.name == name) return routing.routing;
    append_listed(known, routing.name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              sentence("routing is ", printable(name), "; it must be one of ", known));
}

void fill_synthetic_row(const SyntheticLayer& layer, std::int64_t token, Bfloat16* row) {
  // The sum of four uniform 16-bit numbers: whole numbers up to the one multiplication, so alike on
  // every machine.
  constexpr float kMean = 2 * 65535.0F;
  constexpr float kPerDeviation = 1.0F / 37837.2F;
  const CounterRandom random = random_of(layer, Stream::kRow, token);
  const CounterRandom of_column = random_of(layer, Stream::kColumn);
  for (int column = 0; column < layer.hidden; ++column) {
    const auto place = static_cast<std::uint64_t>(column);
    const std::uint64_t bits = random(place);
    const std::uint64_t sum =
        (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
    const float factor = of_column(place) % 128 == 0 ? 8 * kPerDeviation : kPerDeviation;
    row[column] = to_bfloat16((static_cast<float>(sum) - kMean) * factor);
  }
}

SyntheticRouting::SyntheticRouting(const SyntheticLayer& layer)
    : layer_(layer), popularity_(popularity_of(layer)) {
  validate(layer);
  std::partial_sum(popularity_.begin(), popularity_.end(), popularity_.begin());
}

int SyntheticRouting::draw(std::uint64_t counter) const {
  const std::uint64_t point = random_of(layer_, Stream::kChoice).below(counter, popularity_.back());
  return static_cast<int>(std::upper_bound(popularity_.begin(), popularity_.end(), point) -
                          popularity_.begin());
}

void SyntheticRouting::fill(std::int64_t token, std::int64_t* ids, float* weights) const {
  constexpr int kDraws = 64;  // per choice; then the next free expert, so that every token ends
  const CounterRandom random = random_of(layer_, Stream::kRoutingWeight);
  std::array<std::uint32_t, kMaxTopk> shares{};
  std::uint32_t sum = 0;
  for (int k = 0; k < layer_.topk; ++k) {
    const auto slot = static_cast<std::uint64_t>(token * layer_.topk + k);
    const auto is_taken = [&](std::int64_t id) { return std::find(ids, ids + k, id) != ids + k; };
    std::int64_t id = draw(slot * kDraws);
    for (std::uint64_t again = 1; again < kDraws && is_taken(id); ++again)
      id = draw(slot * kDraws + again);
    while (is_taken(id))
      id = (id + 1) % layer_.experts;
    ids[k] = id;
    constexpr std::uint32_t kLeast = 4096;
    shares[static_cast<std::size_t>(k)] =
        kLeast + static_cast<std::uint32_t>(random.below(slot, 65'536 - kLeast));
    sum += shares[static_cast<std::size_t>(k)];
  }
  for (int k = 0; k < layer_.topk; ++k)
    weights[k] = static_cast<float>(shares[static_cast<std::size_t>(k)]) / static_cast<float>(sum);
}

void write_synthetic_input(const std::string& path,
                           const SyntheticLayer& layer,
                           const Progress& progress) {
  constexpr std::size_t kRowsAtOnce = 256;  // between releases
  const SyntheticRouting routing(layer);
  const auto columns = static_cast<std::size_t>(layer.hidden);
  const auto topk = static_cast<std::size_t>(layer.topk);
  const std::vector<TensorSpec> tensors = {
      {"x", DataType::kBF16, {layer.tokens, layer.hidden}},
      {"topk_ids", DataType::kI64, {layer.tokens, layer.topk}},
      {"topk_weights", DataType::kF32, {layer.tokens, layer.topk}},
      {"tokens_per_rank", DataType::kI64, {layer.ranks}}};
  SafetensorsOutput output = SafetensorsOutput::create(path, tensors);
  const std::span<std::uint8_t> x = output.tensor("x");
  const std::span<std::uint8_t> all_ids = output.tensor("topk_ids");
  const std::span<std::uint8_t> all_weights = output.tensor("topk_weights");
  std::vector<Bfloat16> row(columns);
  std::vector<std::int64_t> ids(topk);
  std::vector<float> weights(topk);
  for (std::int64_t token = 0; token < layer.tokens; ++token) {
    const auto place = static_cast<std::size_t>(token);
    fill_synthetic_row(layer, token, row.data());
    routing.fill(token, ids.data(), weights.data());
    const std::size_t row_bytes = columns * sizeof(Bfloat16);
    std::memcpy(x.data() + place * row_bytes, row.data(), row_bytes);
    std::memcpy(all_ids.data() + place * topk * sizeof(std::int64_t),
                ids.data(),
                topk * sizeof(std::int64_t));
    std::memcpy(
        all_weights.data() + place * topk * sizeof(float), weights.data(), topk * sizeof(float));
    if ((place + 1) % kRowsAtOnce == 0) {
      output.release(x.subspan((place + 1 - kRowsAtOnce) * row_bytes, kRowsAtOnce * row_bytes));
      if (progress) progress((place + 1) * row_bytes, x.size());
    }
  }
  const std::vector<std::int64_t> split = even_split(layer.tokens, layer.ranks);
  std::memcpy(
      output.tensor("tokens_per_rank").data(), split.data(), split.size() * sizeof split[0]);
  output.commit();
}

}  // namespace megamoe
