#pragma once

#include <cstdint>
#include <vector>

#include "device_layer.hpp"
#include "stage_check.hpp"
#include "stage_reference.hpp"

namespace megamoe::test {

// One rank's pool as it lies after a call that didn't lap its ring.
class PoolImage {
 public:
  PoolImage() = default;
  PoolImage(const DeviceLayer& layer, int rank, int blocks);

  int index(const PoolRow& row) const { return row.block * block_m_ + row.row; }
  SourceSlot source(const PoolRow& row) const { return source_[at(row)]; }
  float weight(const PoolRow& row) const { return weight_[at(row)]; }
  // Of a row of a linear's input.
  std::int32_t exponent(Phase phase, const PoolRow& row) const {
    return (phase == Phase::kLinear1 ? exponent1_ : exponent2_)[at(row)];
  }
  // Elements of a pulled row that are not what the puller must have written; all, when its exponent
  // is not.
  std::int64_t wrong_elements(const PoolRow& row,
                              const std::uint8_t* codes,
                              const std::uint8_t* scales) const;
  // The same of a settled row, against the activations that linear 1 left.
  std::int64_t wrong_settled_elements(const PoolRow& row) const;
  // The bits at a place along K of a linear's input, after the permutation.
  std::uint16_t element(Phase phase, const PoolRow& row, int position) const;
  // One row of a linear's input along K, at its full size.
  std::vector<double> values(Phase phase, const PoolRow& row) const;

 private:
  std::size_t at(const PoolRow& row) const { return static_cast<std::size_t>(index(row)); }
  std::int64_t wrong_elements(Phase phase, const PoolRow& row, const RegroupedRow& wanted) const;

  Problem problem_;
  sm90::Operands operands_{};
  int block_m_ = 0;
  std::vector<SourceSlot> source_;
  std::vector<float> weight_;
  std::vector<std::int32_t> exponent1_, exponent2_;
  std::vector<std::byte> linear1_, linear2_;
  std::vector<std::uint8_t> activations_;
};

}  // namespace megamoe::test
