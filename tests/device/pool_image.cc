#include "pool_image.hpp"

#include <cmath>

#include "stage_reference.hpp"

namespace megamoe::test {

PoolImage::PoolImage(const DeviceLayer& layer, int rank, int blocks)
    : problem_(layer.problem()),
      operands_(layer.options().operands),
      block_m_(layer.args(rank).call.ring.block_m) {
  const Workspace& w = layer.workspace();
  const auto rows = static_cast<std::size_t>(blocks) * static_cast<std::size_t>(block_m_);
  source_ = layer.read(rank, w.row_source, rows);
  weight_ = layer.read(rank, w.row_weight, rows);
  exponent1_ = layer.read(rank, Sym<std::int32_t>{w.linear1_scales.offset}, rows);
  exponent2_ = layer.read(rank, Sym<std::int32_t>{w.linear2_scales.offset}, rows);
  const auto bytes_of = [&](int depth) {
    return rows * static_cast<std::size_t>(sm90::pool_row_bytes(operands_, depth));
  };
  linear1_ = layer.read(rank, w.linear1_rows, bytes_of(problem_.hidden));
  linear2_ = layer.read(rank, w.linear2_rows, bytes_of(problem_.intermediate));
  const Sym<std::byte> activations = sm90::activation_row(layer.args(rank).call, operands_, 0);
  activations_ = layer.read(
      rank,
      Sym<std::uint8_t>{activations.offset},
      rows * static_cast<std::size_t>(sm90::ActivationRow{problem_.intermediate}.bytes()));
}

std::int64_t PoolImage::wrong_elements(const PoolRow& row,
                                       const std::uint8_t* codes,
                                       const std::uint8_t* scales) const {
  return wrong_elements(
      Phase::kLinear1, row, regrouped_row(operands_, codes, scales, problem_.hidden));
}

std::int64_t PoolImage::wrong_settled_elements(const PoolRow& row) const {
  const sm90::ActivationRow layout{problem_.intermediate};
  const std::uint8_t* codes = &activations_[at(row) * static_cast<std::size_t>(layout.bytes())];
  return wrong_elements(
      Phase::kLinear2,
      row,
      regrouped_row(operands_, codes, codes + layout.scales(), problem_.intermediate));
}

std::int64_t PoolImage::wrong_elements(Phase phase,
                                       const PoolRow& row,
                                       const RegroupedRow& wanted) const {
  const auto count = static_cast<int>(wanted.elements.size());
  if (exponent(phase, row) != wanted.exponent) return count;
  std::int64_t wrong = 0;
  for (int i = 0; i < count; ++i)
    wrong += element(phase, row, i) != wanted.elements[static_cast<std::size_t>(i)];
  return wrong;
}

std::uint16_t PoolImage::element(Phase phase, const PoolRow& row, int position) const {
  const bool is_linear1 = phase == Phase::kLinear1;
  const int depth = is_linear1 ? problem_.hidden : problem_.intermediate;
  const std::byte* block = (is_linear1 ? linear1_ : linear2_).data() +
                           static_cast<std::size_t>(row.block) *
                               static_cast<std::size_t>(block_m_) *
                               static_cast<std::size_t>(sm90::pool_row_bytes(operands_, depth));
  return pool_element(operands_, block, block_m_, row.row, position);
}

std::vector<double> PoolImage::values(Phase phase, const PoolRow& row) const {
  const int depth = phase == Phase::kLinear1 ? problem_.hidden : problem_.intermediate;
  std::vector<double> values(static_cast<std::size_t>(depth));
  for (int k = 0; k < depth; ++k) {
    const int position = k / 128 * 128 + sm90::token_position(operands_, k % 128);
    values[static_cast<std::size_t>(k)] =
        std::ldexp(element_value(operands_, element(phase, row, position)), exponent(phase, row));
  }
  return values;
}

}  // namespace megamoe::test
