#include "megamoe/layer.hpp"

#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "numerics/quantize.hpp"
#include "plan/choose.hpp"
#include "runtime/rank_layer.hpp"

namespace megamoe {
namespace {

RankLayer& layer_of(const std::unique_ptr<RankLayer>& rank_layer) {
  require(rank_layer != nullptr, ErrorCode::kInvalidArgument, "the layer was moved from");
  return *rank_layer;
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
  require(rows != nullptr || num_tokens == 0, ErrorCode::kInvalidArgument, "rows is null");
  const LayerInputs to = inputs();
  const std::int64_t cell = first * p.hidden;
  quantize_rows(rows,
                num_tokens,
                p.hidden,
                to.tokens.data() + cell,
                to.token_scales.data() + cell / kGroupSize);
}

CallReport Layer::forward(const ForwardArguments& arguments) {
  return layer_of(rank_layer_).forward(arguments);
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
  return choose_plan(problem, limits_of_machine(options, problem.ranks), plan_request(options))
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

}  // namespace megamoe
