#include "check_stages.hpp"

#include <mutex>

#include "pool_image.hpp"

namespace megamoe::test {
namespace {

std::vector<int> rows_by_expert(const DeviceLayer& layer,
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

class StageCheck {
 public:
  StageCheck(const DeviceLayer& layer,
             int rank,
             const std::vector<RandomInput>& inputs,
             const RandomWeights& weights)
      : layer_(layer),
        p_(layer.problem()),
        rank_(rank),
        inputs_(inputs),
        weights_(weights.view().expert(rank * p_.experts_per_rank(), p_)),
        operands_(layer.options().operands),
        block_m_(layer.options().block_m) {}

  StageReport run() {
    const std::vector<int> rows = rows_by_expert(layer_, rank_, inputs_);
    int block = 0;
    std::vector<PoolRow> all;
    for (std::size_t e = 0; e < rows.size(); ++e) {
      for (int r = 0; r < rows[e]; ++r)
        all.push_back({static_cast<int>(e), block + r / block_m_, r % block_m_});
      block += ceil_div(rows[e], block_m_);
    }
    pool_ = PoolImage(layer_, rank_, block);
    for (int r = 0; r < p_.ranks; ++r)
      combine_.push_back(layer_.read(
          r, layer_.workspace().combine, static_cast<std::size_t>(p_.pairs() * p_.hidden)));
    const int stride = std::max<int>(1, static_cast<int>(all.size()) / 32);
    parallel_for(static_cast<int>(all.size()), [&](int i) {
      const PoolRow& row = all[static_cast<std::size_t>(i)];
      check_pull(row);
      if (i % stride != 0) return;
      check_linear1(row);
      check_linear2(row);
    });
    check_sums();
    return report_;
  }

 private:
  void check_pull(const PoolRow& row) {
    const SourceSlot slot = pool_.source(row);
    const RandomInput& input = inputs_[slot.rank % inputs_.size()];
    const auto pair = static_cast<std::size_t>(slot.pair) % input.ids.size();
    const std::size_t token = pair / static_cast<std::size_t>(p_.topk);
    const auto hidden = static_cast<std::size_t>(p_.hidden);
    const RegroupedRow wanted = regrouped_row(operands_,
                                              input.codes.data() + token * hidden,
                                              input.scales.data() + token * hidden / 32,
                                              p_.hidden);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < wanted.elements.size(); ++i)
      wrong += pool_.element(Phase::kLinear1, row, static_cast<int>(i)) != wanted.elements[i];
    const bool header_is_right = input.ids[pair] == row.expert + rank_ * p_.experts_per_rank() &&
                                 pool_.weight(row) == input.weights[pair] &&
                                 pool_.exponent(row) == wanted.exponent;
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
      std::vector<double> group;
      for (int c = g * 32; c < g * 32 + 32; ++c) {
        double gate = dot(w.linear1, w.linear1_scale, c, input);
        double up = dot(w.linear1, w.linear1_scale, p_.intermediate + c, input);
        if (p_.has_biases) {
          gate += static_cast<double>(w.linear1_bias[c]);
          up += static_cast<double>(w.linear1_bias[p_.intermediate + c]);
        }
        group.push_back(activation_of(
            rounded_to_bfloat16(gate), rounded_to_bfloat16(up), weight, p_.activation));
      }
      const std::vector<double> wanted = quantised(group);
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

  const DeviceLayer& layer_;
  const Problem& p_;
  int rank_;
  const std::vector<RandomInput>& inputs_;
  WeightView weights_;
  sm90::Operands operands_;
  int block_m_;
  PoolImage pool_;
  std::vector<std::vector<Bfloat16>> combine_;
  StageReport report_;
  std::mutex mutex_;
};

}  // namespace

StageReport check_stages(const DeviceLayer& layer,
                         int rank,
                         const std::vector<RandomInput>& inputs,
                         const RandomWeights& weights) {
  return StageCheck(layer, rank, inputs, weights).run();
}

Distance check_end_to_end(const DeviceLayer& layer,
                          int rank,
                          const RandomInput& input,
                          const RandomWeights& weights) {
  const Problem& p = layer.problem();
  const std::vector<Bfloat16> y = layer.output(rank);
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const int stride = std::max(1, input.tokens / 12);
  Distance total;
  for (int t = 0; t < input.tokens; t += stride) {
    std::vector<double> row(hidden);
    for (std::size_t k = 0; k < hidden; ++k) {
      const std::size_t at = static_cast<std::size_t>(t) * hidden + k;
      row[k] = std::ldexp(static_cast<double>(to_float(Float8E4M3{input.codes[at]})),
                          input.scales[at / 32] - 127);
    }
    const int channel_stride = std::max(1, p.hidden / 128) | 1;
    std::vector<double> sums(hidden);
    for (int k = 0; k < p.topk; ++k) {
      const auto pair = static_cast<std::size_t>(t * p.topk + k);
      if (input.ids[pair] < 0) continue;
      const WeightView w = weights.view().expert(static_cast<int>(input.ids[pair]), p);
      const double weight = static_cast<double>(input.weights[pair]);
      std::vector<double> a(static_cast<std::size_t>(p.intermediate));
      parallel_for(p.intermediate / 32, [&](int g) {
        std::vector<double> group;
        for (int c = g * 32; c < g * 32 + 32; ++c) {
          double gate = dot(w.linear1, w.linear1_scale, c, row);
          double up = dot(w.linear1, w.linear1_scale, p.intermediate + c, row);
          if (p.has_biases) {
            gate += static_cast<double>(w.linear1_bias[c]);
            up += static_cast<double>(w.linear1_bias[p.intermediate + c]);
          }
          group.push_back(activation_of(
              rounded_to_bfloat16(gate), rounded_to_bfloat16(up), weight, p.activation));
        }
        const std::vector<double> q = quantised(group);
        std::copy(q.begin(), q.end(), a.begin() + g * 32);
      });
      for (int h = 0; h < p.hidden; h += channel_stride) {
        double out = dot(w.linear2, w.linear2_scale, h, a);
        if (p.has_biases) out += static_cast<double>(w.linear2_bias[h]) * weight;
        sums[static_cast<std::size_t>(h)] += rounded_to_bfloat16(out);
      }
    }
    Distance of_token;
    for (int h = 0; h < p.hidden; h += channel_stride)
      of_token.add(static_cast<double>(to_float(
                       y[static_cast<std::size_t>(t) * hidden + static_cast<std::size_t>(h)])),
                   rounded_to_bfloat16(sums[static_cast<std::size_t>(h)]));
    total.add_row(of_token);
  }
  return total;
}

}  // namespace megamoe::test
