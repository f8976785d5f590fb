#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "device_ranks.hpp"
#include "stage_reference.hpp"

namespace megamoe::test {

// A row of the pool: its local expert, its pool block and its place in that.
struct PoolRow {
  int expert = 0;
  int block = 0;
  int row = 0;
};

// Whose stages, and how its pool is cut.
struct RankStages {
  int rank = 0;
  int block_m = 16;
};

// What came out of each stage of one call against fp64 fed with what went in.
struct StageReport {
  std::int64_t wrong_pool_bytes = 0;  // pulled rows: bit for bit
  std::int64_t wrong_headers = 0;     // source, weight, exponent
  Distance activations;               // linear 1 to the pool's second buffer
  Distance outputs;                   // linear 2's rows, beyond their bf16 rounding
  std::int64_t wrong_sums = 0;        // y against the fixed-order sum of the slots
};

inline std::vector<int> rows_by_expert(const DeviceRanks& layer,
                                       int rank,
                                       const std::vector<RandomInput>& inputs) {
  const Problem& p = layer.problem();
  std::vector<int> rows(static_cast<std::size_t>(p.experts_per_rank()));
  for (const RandomInput& input : inputs)
    for (const std::int64_t id : input.ids)
      if (id >= 0 && p.rank_of(static_cast<int>(id)) == rank)
        ++rows[static_cast<std::size_t>(id % p.experts_per_rank())];
  return rows;
}

// `Image` is a rank's pool as its machine lays it out: index(row), source(row), weight(row),
// values(phase, row) along K at full size, wrong_elements(row, codes, scales) and, on a machine
// that settles rows between the linears, wrong_settled_elements(row), what differs from a pulled
// row bit for bit.
template <class Image>
class StageCheck {
 public:
  // `image_of(blocks)` reads that many pool blocks.
  template <class ImageOf>
  StageCheck(const DeviceRanks& layer,
             const RankStages& stages,
             const std::vector<RandomInput>& inputs,
             const RandomWeights& weights,
             const ImageOf& image_of)
      : layer_(layer),
        p_(layer.problem()),
        rank_(stages.rank),
        inputs_(inputs),
        weights_(weights.view().expert(stages.rank * p_.experts_per_rank(), p_)),
        block_m_(stages.block_m) {
    list_rows();
    pool_ = image_of(blocks_);
  }

  StageReport run() {
    for (int r = 0; r < p_.ranks; ++r)
      combine_.push_back(layer_.read(
          r, layer_.workspace().combine, static_cast<std::size_t>(p_.pairs() * p_.hidden)));
    const int stride = std::max<int>(1, static_cast<int>(rows_.size()) / 32);
    parallel_for(static_cast<int>(rows_.size()), [&](int i) {
      const PoolRow& row = rows_[static_cast<std::size_t>(i)];
      check_pull(row);
      if (i % stride != 0) return;
      check_linear1(row);
      check_linear2(row);
    });
    check_sums();
    return report_;
  }

 private:
  void list_rows() {
    const std::vector<int> rows = rows_by_expert(layer_, rank_, inputs_);
    for (std::size_t e = 0; e < rows.size(); ++e) {
      for (int r = 0; r < rows[e]; ++r)
        rows_.push_back({static_cast<int>(e), blocks_ + r / block_m_, r % block_m_});
      blocks_ += ceil_div(rows[e], block_m_);
    }
  }

  void check_pull(const PoolRow& row) {
    const SourceSlot slot = pool_.source(row);
    const RandomInput& input = inputs_[slot.rank % inputs_.size()];
    const auto pair = static_cast<std::size_t>(slot.pair) % input.ids.size();
    const std::size_t token = pair / static_cast<std::size_t>(p_.topk);
    const auto hidden = static_cast<std::size_t>(p_.hidden);
    std::int64_t wrong = pool_.wrong_elements(
        row, input.codes.data() + token * hidden, input.scales.data() + token * hidden / 32);
    if constexpr (requires { pool_.wrong_settled_elements(row); })
      wrong += pool_.wrong_settled_elements(row);
    const bool header_is_right = input.ids[pair] == row.expert + rank_ * p_.experts_per_rank() &&
                                 pool_.weight(row) == input.weights[pair];
    const std::lock_guard lock(mutex_);
    report_.wrong_pool_bytes += wrong;
    report_.wrong_headers += !header_is_right;
  }

  void check_linear1(const PoolRow& row) {
    const std::vector<double> input = pool_.values(Phase::kLinear1, row);
    const std::vector<double> output = pool_.values(Phase::kLinear2, row);
    const WeightView w = weights_.expert(row.expert, p_);
    const double weight = static_cast<double>(pool_.weight(row));
    const int groups = p_.intermediate / 32;
    const int stride = std::max(1, groups / 4);
    Distance distance;
    for (int g = pool_.index(row) % stride; g < groups; g += stride) {
      const std::vector<double> wanted = activated_group(p_, w, weight, input, g);
      for (int i = 0; i < 32; ++i)
        distance.add(output[static_cast<std::size_t>(g * 32 + i)],
                     wanted[static_cast<std::size_t>(i)]);
    }
    const std::lock_guard lock(mutex_);
    report_.activations.add_row(distance);
  }

  void check_linear2(const PoolRow& row) {
    const std::vector<double> input = pool_.values(Phase::kLinear2, row);
    const WeightView w = weights_.expert(row.expert, p_);
    const SourceSlot slot = pool_.source(row);
    const auto topk = static_cast<std::uint32_t>(p_.topk);
    const std::size_t out_row =
        static_cast<std::size_t>(slot.pair % topk) * static_cast<std::size_t>(p_.capacity) +
        slot.pair / topk;
    const int stride = std::max(1, p_.hidden / 128) | 1;
    Distance distance;
    for (int h = pool_.index(row) % stride; h < p_.hidden; h += stride) {
      double wanted = dot(w.linear2, w.linear2_scale, h, input);
      if (p_.has_biases)
        wanted += static_cast<double>(w.linear2_bias[h]) * static_cast<double>(pool_.weight(row));
      const std::size_t at =
          out_row * static_cast<std::size_t>(p_.hidden) + static_cast<std::size_t>(h);
      distance.add_beyond_rounding(
          static_cast<double>(to_float(combine_[slot.rank % combine_.size()][at])), wanted);
    }
    const std::lock_guard lock(mutex_);
    report_.outputs.add_row(distance);
  }

  void check_sums() {
    const std::vector<Bfloat16> y = layer_.output(rank_);
    const RandomInput& input = inputs_[static_cast<std::size_t>(rank_)];
    const std::vector<Bfloat16>& slots = combine_[static_cast<std::size_t>(rank_)];
    const auto hidden = static_cast<std::size_t>(p_.hidden);
    for (int t = 0; t < input.tokens; ++t) {
      for (std::size_t h = 0; h < hidden; ++h) {
        float sum = 0;
        for (int k = 0; k < p_.topk; ++k)
          if (input.ids[static_cast<std::size_t>(t * p_.topk + k)] >= 0)
            sum += to_float(slots[(static_cast<std::size_t>(k * p_.capacity + t)) * hidden + h]);
        report_.wrong_sums +=
            y[static_cast<std::size_t>(t) * hidden + h].bits != to_bfloat16(sum).bits;
      }
    }
  }

  const DeviceRanks& layer_;
  const Problem& p_;
  int rank_;
  const std::vector<RandomInput>& inputs_;
  WeightView weights_;
  int block_m_;
  std::vector<PoolRow> rows_;
  int blocks_ = 0;
  Image pool_;
  std::vector<std::vector<Bfloat16>> combine_;
  StageReport report_;
  std::mutex mutex_;
};

}  // namespace megamoe::test
