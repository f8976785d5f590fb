#include "pool_image.hpp"

#include <cmath>

#include "stage_reference.hpp"

namespace megamoe::test {

PoolImage::PoolImage(const DeviceLayer& layer, int rank, int blocks)
    : problem_(layer.problem()),
      operands_(layer.options().operands),
      format_(layer.workspace().format),
      block_m_(layer.args(rank).call.ring.block_m) {
  const Workspace& w = layer.workspace();
  const auto rows = static_cast<std::size_t>(blocks) * static_cast<std::size_t>(block_m_);
  source_ = layer.read(rank, w.row_source, rows);
  weight_ = layer.read(rank, w.row_weight, rows);
  exponent_ = layer.read(rank, Sym<std::int32_t>{w.linear1_scales.offset}, rows);
  linear1_ = layer.read(rank, w.linear1_rows, rows * format_.linear1_row_bytes);
  linear2_ = layer.read(rank, w.linear2_rows, rows * format_.linear2_row_bytes);
  linear2_scales_ = layer.read(rank,
                               Sym<float>{w.linear2_scales.offset},
                               rows * format_.linear2_scale_bytes / sizeof(float));
}

std::int64_t PoolImage::wrong_elements(const PoolRow& row,
                                       const std::uint8_t* codes,
                                       const std::uint8_t* scales) const {
  const RegroupedRow wanted = regrouped_row(operands_, codes, scales, problem_.hidden);
  const auto count = static_cast<int>(wanted.elements.size());
  if (exponent(row) != wanted.exponent) return count;
  std::int64_t wrong = 0;
  for (int i = 0; i < count; ++i)
    wrong += element(Phase::kLinear1, row, i) != wanted.elements[static_cast<std::size_t>(i)];
  return wrong;
}

std::uint16_t PoolImage::element(Phase phase, const PoolRow& row, int position) const {
  const bool is_linear1 = phase == Phase::kLinear1;
  const std::uint32_t row_bytes =
      is_linear1 ? format_.linear1_row_bytes : format_.linear2_row_bytes;
  const std::byte* block =
      (is_linear1 ? linear1_ : linear2_).data() +
      static_cast<std::size_t>(row.block) * static_cast<std::size_t>(block_m_) * row_bytes;
  return pool_element(operands_, block, block_m_, row.row, position);
}

std::vector<double> PoolImage::values(Phase phase, const PoolRow& row) const {
  const int depth = phase == Phase::kLinear1 ? problem_.hidden : problem_.intermediate;
  std::vector<double> values(static_cast<std::size_t>(depth));
  for (int k = 0; k < depth; ++k) {
    const int position = k / 128 * 128 + sm90::token_position(operands_, k % 128);
    values[static_cast<std::size_t>(k)] =
        element_value(operands_, element(phase, row, position)) * scale(phase, row, k / 128);
  }
  return values;
}

double PoolImage::scale(Phase phase, const PoolRow& row, int step) const {
  if (phase == Phase::kLinear1) return std::ldexp(1.0, exponent(row));
  if (operands_ == sm90::Operands::kBfloat16) return 1.0;
  const int steps = ceil_div(problem_.intermediate, 128);
  const int place = (row.block * steps + step) * block_m_ + sm90::scale_place(block_m_, row.row);
  return static_cast<double>(linear2_scales_[static_cast<std::size_t>(place)]);
}

}  // namespace megamoe::test
