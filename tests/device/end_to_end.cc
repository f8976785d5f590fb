#include "end_to_end.hpp"

#include <algorithm>

namespace megamoe::test {

Distance check_end_to_end(const DeviceRanks& layer,
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
        const std::vector<double> q = activated_group(p, w, weight, row, g);
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
