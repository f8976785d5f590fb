#include <array>
#include <cmath>

#include "base/math.hpp"
#include "files/split_experts.hpp"
#include "numerics/float8.hpp"

namespace megamoe {
namespace {

constexpr SplitNames kNames = {
    ".mlp.experts.", "gate_proj", "up_proj", "down_proj", ".weight_scale_inv"};

constexpr std::array<float, 256> all_float8_values() {
  std::array<float, 256> values{};
  for (unsigned code = 0; code < 256; ++code)
    values[code] = to_float(Float8E4M3{static_cast<std::uint8_t>(code)});
  return values;
}
constexpr std::array<float, 256> kFloat8Values = all_float8_values();

bool is_float8(const TensorView& weight) {
  return weight.type == DataType::kF8E4M3;
}

class RequantisedWeights : public WeightSource {
 public:
  RequantisedWeights(WeightFacts facts,
                     std::vector<SplitExpert> experts,
                     int block_rows,
                     int block_columns)
      : WeightSource(std::move(facts)),
        experts_(std::move(experts)),
        block_rows_(block_rows),
        block_columns_(block_columns) {}

  WeightView expert(int expert, ExpertScratch& scratch) const override {
    const SplitExpert& from = experts_.at(static_cast<std::size_t>(expert));
    from.require_whole();
    const auto elements =
        static_cast<std::size_t>(facts().hidden) * static_cast<std::size_t>(facts().intermediate);
    scratch.linear1.resize(elements);
    scratch.linear1_scale.resize(elements / 16);
    scratch.linear2.resize(elements / 2);
    scratch.linear2_scale.resize(elements / kGroupSize);
    quantise(from.gate, scratch.linear1.data(), scratch.linear1_scale.data(), scratch);
    quantise(from.up,
             scratch.linear1.data() + elements / 2,
             scratch.linear1_scale.data() + elements / kGroupSize,
             scratch);
    quantise(from.down, scratch.linear2.data(), scratch.linear2_scale.data(), scratch);
    WeightView view;
    view.linear1 = scratch.linear1.data();
    view.linear1_scale = scratch.linear1_scale.data();
    view.linear2 = scratch.linear2.data();
    view.linear2_scale = scratch.linear2_scale.data();
    return view;
  }

  void release(int expert) const override {
    experts_.at(static_cast<std::size_t>(expert)).release();
  }

 private:
  void quantise(const SplitMatrix& matrix,
                std::uint8_t* packed,
                std::uint8_t* scales,
                ExpertScratch& scratch) const {
    const std::int64_t rows = matrix.weight.shape[0];
    const std::int64_t columns = matrix.weight.shape[1];
    scratch.row.resize(static_cast<std::size_t>(columns));
    for (std::int64_t row = 0; row < rows; ++row) {
      if (is_float8(matrix.weight))
        widen_float8(matrix, row, scratch.row.data());
      else
        widen_bfloat16(matrix.weight, row, scratch.row.data());
      scratch.error += quantize_row_to_mxfp4(scratch.row.data(),
                                             columns,
                                             packed + row * columns / 2,
                                             scales + row * columns / kGroupSize);
    }
  }

  void widen_float8(const SplitMatrix& matrix, std::int64_t row, float* out) const {
    const std::int64_t columns = matrix.weight.shape[1];
    const std::uint8_t* codes = matrix.weight.bytes.data() + row * columns;
    const std::int64_t first_scale = row / block_rows_ * matrix.scale.shape[1];
    for (std::int64_t begin = 0; begin < columns; begin += block_columns_) {
      const auto scale = matrix.scale.at<float>(first_scale + begin / block_columns_);
      const std::int64_t end = std::min(columns, begin + block_columns_);
      for (std::int64_t column = begin; column < end; ++column)
        out[column] = kFloat8Values[codes[column]] * scale;
    }
  }

  static void widen_bfloat16(const TensorView& weight, std::int64_t row, float* out) {
    const std::int64_t columns = weight.shape[1];
    const std::uint8_t* values = weight.bytes.data() + row * columns * 2;
    for (std::int64_t column = 0; column < columns; ++column) {
      Bfloat16 value;
      std::memcpy(&value.bits, values + 2 * column, sizeof value.bits);
      out[column] = to_float(value);
    }
  }

  std::vector<SplitExpert> experts_;
  int block_rows_;
  int block_columns_;
};

void check(const SplitMatrix& matrix, int rows, int columns, const ModelConfig& config) {
  require_type(matrix.weight, {DataType::kF8E4M3, DataType::kBF16});
  require_shape(matrix.weight, {{"rows", rows}, {"columns", columns}});
  if (!is_float8(matrix.weight)) return;
  require_type(matrix.scale, {DataType::kF32});
  require_shape(matrix.scale,
                {{"blocks of rows", ceil_div(rows, config.scale_block_rows)},
                 {"blocks of columns", ceil_div(columns, config.scale_block_columns)}});
}

}  // namespace

std::unique_ptr<WeightSource> open_requantised_layer(Checkpoint& checkpoint,
                                                     const WeightOptions& options) {
  const ModelConfig& config = checkpoint.config();
  WeightFacts facts = checkpoint_facts(checkpoint, options);
  std::vector<SplitExpert> experts =
      open_split_experts(checkpoint, options, kNames, is_float8, facts);
  for (const SplitExpert& expert : experts) {
    check(expert.gate, facts.intermediate, facts.hidden, config);
    check(expert.up, facts.intermediate, facts.hidden, config);
    check(expert.down, facts.hidden, facts.intermediate, config);
  }
  require(options.allow_requantise,
          ErrorCode::kInvalidArgument,
          facts.description,
          " is ",
          name_of(experts.front().gate.weight.type),
          ", not MXFP4; with --requantise it is quantised to MXFP4 as it is read, and the error is "
          "printed");
  facts.is_requantised = true;
  return std::make_unique<RequantisedWeights>(
      std::move(facts), std::move(experts), config.scale_block_rows, config.scale_block_columns);
}

}  // namespace megamoe
