#pragma once

#include <cmath>
#include <vector>

#include "emulated_layer.hpp"
#include "stage_check.hpp"

namespace megamoe::test {

// One rank's pool in Blackwell's layout, as it lies after a call that didn't lap its ring.
class EmulatedPoolImage {
 public:
  EmulatedPoolImage() = default;
  EmulatedPoolImage(const EmulatedLayer& layer, int rank, int blocks)
      : problem_(layer.problem()),
        format_(layer.workspace().format),
        block_m_(layer.options().block_m) {
    const Workspace& w = layer.workspace();
    const auto rows = static_cast<std::size_t>(blocks) * static_cast<std::size_t>(block_m_);
    source_ = layer.read(rank, w.row_source, rows);
    weight_ = layer.read(rank, w.row_weight, rows);
    linear1_ = layer.read(rank, w.linear1_rows, rows * format_.linear1_row_bytes);
    linear1_scales_ = layer.read(rank, w.linear1_scales, rows * format_.linear1_scale_bytes);
    linear2_ = layer.read(rank, w.linear2_rows, rows * format_.linear2_row_bytes);
    linear2_scales_ = layer.read(rank, w.linear2_scales, rows * format_.linear2_scale_bytes);
  }

  int index(const PoolRow& row) const { return row.block * block_m_ + row.row; }
  SourceSlot source(const PoolRow& row) const { return source_[at(row)]; }
  float weight(const PoolRow& row) const { return weight_[at(row)]; }

  std::uint8_t code(Phase phase, const PoolRow& row, int k) const {
    const bool is_linear1 = phase == Phase::kLinear1;
    const std::uint32_t row_bytes =
        is_linear1 ? format_.linear1_row_bytes : format_.linear2_row_bytes;
    const std::int64_t byte = first_row(row) * row_bytes +
                              sm100::token_chunk_offset(block_m_, k / 128, row.row, k % 128 / 16) +
                              k % 16;
    return byte_of(is_linear1 ? linear1_ : linear2_, byte);
  }
  std::uint8_t scale(Phase phase, const PoolRow& row, int k) const {
    const bool is_linear1 = phase == Phase::kLinear1;
    const std::uint32_t scale_bytes =
        is_linear1 ? format_.linear1_scale_bytes : format_.linear2_scale_bytes;
    const std::int64_t byte = first_row(row) * scale_bytes +
                              sm100::token_scale_offset(block_m_, k / 128, row.row) + k % 128 / 32;
    return byte_of(is_linear1 ? linear1_scales_ : linear2_scales_, byte);
  }

  // One row of a linear's input along K, at its full size.
  std::vector<double> values(Phase phase, const PoolRow& row) const {
    const int depth = phase == Phase::kLinear1 ? problem_.hidden : problem_.intermediate;
    std::vector<double> values;
    for (int k = 0; k < depth; ++k) {
      const auto value = static_cast<double>(to_float(Float8E4M3{code(phase, row, k)}));
      values.push_back(std::ldexp(value, scale(phase, row, k) - 127));
    }
    return values;
  }

  // A pulled row keeps its codes and scales; its padding is zeros of scale one.
  std::int64_t wrong_elements(const PoolRow& row,
                              const std::uint8_t* codes,
                              const std::uint8_t* scales) const {
    std::int64_t wrong = 0;
    for (int k = 0; k < sm100::steps_of(problem_.hidden) * 128; ++k) {
      const bool is_padding = k >= problem_.hidden;
      wrong += code(Phase::kLinear1, row, k) != (is_padding ? 0 : codes[k]);
      wrong += scale(Phase::kLinear1, row, k) != (is_padding ? 127 : scales[k / 32]);
    }
    return wrong;
  }

 private:
  std::size_t at(const PoolRow& row) const { return static_cast<std::size_t>(index(row)); }
  std::int64_t first_row(const PoolRow& row) const { return std::int64_t{row.block} * block_m_; }
  static std::uint8_t byte_of(const std::vector<std::byte>& bytes, std::int64_t at) {
    return static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(at)]);
  }

  Problem problem_;
  PoolFormat format_;
  int block_m_ = 0;
  std::vector<SourceSlot> source_;
  std::vector<float> weight_;
  std::vector<std::byte> linear1_, linear1_scales_, linear2_, linear2_scales_;
};

}  // namespace megamoe::test
