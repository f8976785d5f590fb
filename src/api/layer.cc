#include "megamoe/layer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "numerics/quantize.hpp"
#include "plan/choose.hpp"
#include "runtime/gpu/sm90_limits.hpp"
#include "runtime/rank_layer.hpp"

namespace megamoe {
namespace {

RankLayer& layer_of(const std::unique_ptr<RankLayer>& rank_layer) {
  require(rank_layer != nullptr, ErrorCode::kInvalidArgument, "the layer was moved from");
  return *rank_layer;
}

constexpr std::int64_t kTokensAtOnce = 256;  // that are quantised between two copies

void require_tokens(const Problem& p, std::int64_t first, std::int64_t num_tokens) {
  require(first >= 0 && num_tokens >= 0 && first <= p.capacity && num_tokens <= p.capacity - first,
          ErrorCode::kInvalidArgument,
          "tokens ",
          first,
          " to ",
          first,
          " + ",
          num_tokens,
          " are not within the capacity of ",
          p.capacity);
}

}  // namespace

Layer::Layer(Group& group, const Problem& problem, const LayerOptions& options)
    : rank_layer_(std::make_unique<RankLayer>(Station::open(group.link(), problem, options))) {}

Layer::Layer(std::unique_ptr<RankLayer> rank_layer) : rank_layer_(std::move(rank_layer)) {}
Layer::~Layer() = default;
Layer::Layer(Layer&&) noexcept = default;
Layer& Layer::operator=(Layer&&) noexcept = default;

Layer Layer::sibling() const {
  return Layer(layer_of(rank_layer_).sibling());
}

void Layer::set_expert(int local_expert, const WeightView& weights) {
  layer_of(rank_layer_).set_expert(local_expert, weights);
}

LayerInputs Layer::inputs() const {
  return layer_of(rank_layer_).inputs();
}

void Layer::set_tokens(std::int64_t first, std::int64_t num_tokens, const std::uint16_t* rows) {
  const Problem& p = problem();
  require_tokens(p, first, num_tokens);
  require(rows != nullptr || num_tokens == 0, ErrorCode::kInvalidArgument, "rows is null");
  const auto at_once = std::min(num_tokens, kTokensAtOnce);
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(at_once * p.hidden));
  std::vector<std::uint8_t> scales(codes.size() / kGroupSize);
  for (std::int64_t done = 0; done < num_tokens; done += at_once) {
    const std::int64_t count = std::min(at_once, num_tokens - done);
    quantize_rows(rows + done * p.hidden, count, p.hidden, codes.data(), scales.data());
    layer_of(rank_layer_).write(TokenRows{first + done, count, codes.data(), scales.data()});
  }
}

void Layer::set_quantized_tokens(std::int64_t first,
                                 std::int64_t num_tokens,
                                 const std::uint8_t* codes,
                                 const std::uint8_t* scales) {
  require_tokens(problem(), first, num_tokens);
  require((codes != nullptr && scales != nullptr) || num_tokens == 0,
          ErrorCode::kInvalidArgument,
          codes == nullptr ? "codes" : "scales",
          " is null");
  layer_of(rank_layer_).write(TokenRows{first, num_tokens, codes, scales});
}

void Layer::set_routing(std::int64_t first,
                        std::int64_t num_tokens,
                        const std::int64_t* ids,
                        const float* weights) {
  require_tokens(problem(), first, num_tokens);
  require((ids != nullptr && weights != nullptr) || num_tokens == 0,
          ErrorCode::kInvalidArgument,
          ids == nullptr ? "ids" : "weights",
          " is null");
  layer_of(rank_layer_).write(RoutingRows{first, num_tokens, ids, weights});
}

CallReport Layer::forward(const ForwardArguments& arguments) {
  return layer_of(rank_layer_).forward(arguments);
}

void Layer::enqueue(const StreamCall& call) {
  layer_of(rank_layer_).enqueue(call);
}

CallReport Layer::wait(void* stream) {
  return layer_of(rank_layer_).wait(stream);
}

CallTimings Layer::time_calls(const TimedCalls& what) {
  return layer_of(rank_layer_).time_calls(what);
}

void Layer::reset() {
  layer_of(rank_layer_).reset();
}

const Problem& Layer::problem() const {
  return layer_of(rank_layer_).station().problem();
}

const Plan& Layer::plan() const {
  return layer_of(rank_layer_).station().plan();
}

const std::string& Layer::machine() const {
  return layer_of(rank_layer_).station().machine_name();
}

int Layer::device() const {
  return layer_of(rank_layer_).station().machine().device();
}

int Layer::workers() const {
  return plan().workers;
}

std::uint64_t Layer::symmetric_bytes() const {
  return layer_of(rank_layer_).station().workspace().bytes;
}

std::uint64_t Layer::weight_bytes() const {
  return layer_of(rank_layer_).weight_bytes();
}

std::uint64_t Layer::symmetric_bytes(const Problem& problem, const LayerOptions& options) {
  validate(problem);
  return choose_plan(
             problem, limits_of_machine(options, {.ranks = problem.ranks}), plan_request(options))
      .symmetric_bytes;
}

void quantize_rows(const std::uint16_t* values,
                   std::int64_t rows,
                   int width,
                   std::uint8_t* codes,
                   std::uint8_t* scales) {
  require(width >= 0 && width % kGroupSize == 0,
          ErrorCode::kInvalidArgument,
          "width is ",
          width,
          "; it must be a multiple of ",
          kGroupSize);
  for (std::int64_t group = 0; group < rows * (width / kGroupSize); ++group) {
    float wide[kGroupSize];
    for (int i = 0; i < kGroupSize; ++i)
      wide[i] = to_float(Bfloat16{values[group * kGroupSize + i]});
    const QuantizedGroup quantized = quantize_group(wide);
    std::memcpy(codes + group * kGroupSize, quantized.codes.data(), quantized.codes.size());
    scales[group] = quantized.scale.bits;
  }
}

bool fits_fast_numerics(const Problem& problem, const WeightView& weights) {
  return sm90_fits_fast(problem, weights);
}

}  // namespace megamoe
