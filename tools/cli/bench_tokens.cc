#include "cli/bench_tokens.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "files/synthetic.hpp"

namespace megamoe::cli {
namespace {

constexpr std::int64_t kFewestTokens = 64;  // so that calls of few tokens still see many experts
constexpr std::int64_t kWindows = 4;        // that the calls of the largest T differ in

std::size_t extent(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

int ranks_of(const RunArguments& arguments) {
  return arguments.ranks.value_or(1);
}

}  // namespace

BenchTokens::BenchTokens(const Problem& problem, std::int64_t count)
    : problem_(problem),
      count_(count),
      codes_(extent(count * problem.hidden)),
      scales_(extent(count * problem.hidden / 32)),
      ids_(extent(count * problem.topk)),
      weights_(extent(count * problem.topk)) {}

std::uint8_t* BenchTokens::codes(std::int64_t token) {
  return codes_.data() + token * problem_.hidden;
}
std::uint8_t* BenchTokens::scales(std::int64_t token) {
  return scales_.data() + token * problem_.hidden / 32;
}
std::int64_t* BenchTokens::ids(std::int64_t token) {
  return ids_.data() + token * problem_.topk;
}
float* BenchTokens::weights(std::int64_t token) {
  return weights_.data() + token * problem_.topk;
}

void BenchTokens::load(Layer& layer, int rank, int count, int call) const {
  const std::int64_t first = (std::int64_t{call} * problem_.ranks + rank) * count;
  // A window may go round the end of the store.
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t from = (first + done) % count_;
    const std::int64_t run = std::min(count - done, count_ - from);
    layer.set_quantized_tokens(done,
                               run,
                               &codes_[extent(from * problem_.hidden)],
                               &scales_[extent(from * problem_.hidden / 32)]);
    layer.set_routing(
        done, run, &ids_[extent(from * problem_.topk)], &weights_[extent(from * problem_.topk)]);
    done += run;
  }
}

BenchRun bench_of_files(const WeightArguments& weights,
                        const std::string& input_path,
                        const ActivationArguments& activation,
                        const RunArguments& arguments,
                        int most) {
  BenchRun bench{.run = open_run(weights, input_path, activation, arguments), .tokens = nullptr};
  bench.run.problem.capacity = std::max(bench.run.problem.capacity, most);
  const InputFile& input = *bench.run.input;
  require(input.tokens() >= 1,
          ErrorCode::kBadFile,
          input_path,
          " has no tokens; a bench needs at least 1");
  bench.tokens = std::make_unique<BenchTokens>(bench.run.problem, input.tokens());
  input.read_rows(0, input.tokens(), bench.tokens->codes(0), bench.tokens->scales(0));
  input.read_routing(0, input.tokens(), bench.tokens->ids(0), bench.tokens->weights(0));
  return bench;
}

BenchRun bench_of_shape(const LayerShape& shape,
                        std::uint64_t seed,
                        const ActivationArguments& activation,
                        const RunArguments& arguments,
                        int most) {
  const int ranks = ranks_of(arguments);
  // A card's caches are flushed instead.
  const std::int64_t windows = is_named_gpu(arguments.layer.machine) ? 1 : kWindows;
  const SyntheticLayer layer{
      .hidden = shape.hidden,
      .intermediate = shape.intermediate,
      .experts = shape.experts,
      .topk = shape.topk,
      .tokens =
          std::clamp(windows * most * ranks, kFewestTokens, std::int64_t{kMaxCapacity} * ranks),
      .ranks = ranks,
      .seed = seed};
  validate(layer);
  BenchRun bench{
      .run = {.problem = {.ranks = ranks,
                          .experts = shape.experts,
                          .topk = shape.topk,
                          .hidden = shape.hidden,
                          .intermediate = shape.intermediate,
                          .capacity = static_cast<int>(arguments.capacity.value_or(most)),
                          .has_biases = false,
                          .activation = activation_of(activation, {})},
              .weights = make_synthetic_weights(layer),
              .input = nullptr,
              .tokens = {},
              .arguments = arguments,
              .group = nullptr},
      .tokens = nullptr};
  validate(bench.run.problem);
  bench.tokens = std::make_unique<BenchTokens>(bench.run.problem, layer.tokens);
  const SyntheticRouting routing(layer);
  std::vector<Bfloat16> row(extent(shape.hidden));
  for (std::int64_t token = 0; token < layer.tokens; ++token) {
    fill_synthetic_row(layer, token, row.data());
    quantize_rows(&row.data()->bits,
                  1,
                  shape.hidden,
                  bench.tokens->codes(token),
                  bench.tokens->scales(token));
    routing.fill(token, bench.tokens->ids(token), bench.tokens->weights(token));
  }
  return bench;
}

}  // namespace megamoe::cli
