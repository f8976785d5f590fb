// One rank, all experts: make a layer, give it weights and tokens, call it.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "megamoe/megamoe.hpp"

namespace {

/// Weights of one expert in canonical layout. Yours come from a checkpoint; here any bytes do.
struct Expert {
  std::vector<std::uint8_t> linear1, linear1_scale, linear2, linear2_scale;

  Expert(const megamoe::Problem& p, int seed) {
    const auto cells =
        static_cast<std::size_t>(p.hidden) * static_cast<std::size_t>(p.intermediate);
    linear1.resize(2 * cells / 2);              // two FP4 codes a byte
    linear1_scale.resize(2 * cells / 32, 122);  // 2^(122 - 127) for every 32 of them
    linear2.resize(cells / 2);
    linear2_scale.resize(cells / 32, 122);
    std::uint32_t state = static_cast<std::uint32_t>(seed);
    for (auto* codes : {&linear1, &linear2})
      for (std::uint8_t& code : *codes)
        code = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24);
  }
  megamoe::WeightView view() const {
    return {linear1.data(),
            linear1_scale.data(),
            linear2.data(),
            linear2_scale.data(),
            nullptr,
            nullptr};
  }
};

}  // namespace

int main() {
  // 1. What the layer is.
  megamoe::Problem problem;
  problem.experts = 8;
  problem.topk = 2;
  problem.hidden = 256;
  problem.intermediate = 128;
  problem.capacity = 16;

  try {
    // 2. A group of one rank, and its layer.
    auto groups = megamoe::Group::in_process(1);
    megamoe::Layer layer(groups[0], problem);

    // 3. Weights, expert by expert; each may be freed as soon as it is packed.
    for (int expert = 0; expert < problem.experts_per_rank(); ++expert)
      layer.set_expert(expert, Expert(problem, expert).view());

    // 4. Tokens as bf16 rows, quantised on the way in, and where each one goes.
    constexpr int kTokens = 4;
    const std::vector<std::uint16_t> rows(kTokens * 256, 0x3F80);  // 1.0
    layer.set_tokens(0, kTokens, rows.data());
    std::vector<std::int64_t> ids;
    for (int pair = 0; pair < kTokens * 2; ++pair)
      ids.push_back(pair % 8);
    const std::vector<float> weights(ids.size(), 0.5F);
    layer.set_routing(0, kTokens, ids.data(), weights.data());

    // 5. The call.
    std::vector<std::uint16_t> output(kTokens * 256);
    const megamoe::CallReport report = layer.forward({kTokens, output.data()});
    std::printf("%d tokens through %d experts on %s in %.2f ms\n",
                kTokens,
                problem.experts,
                layer.machine().c_str(),
                report.times.total);
  } catch (const megamoe::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
