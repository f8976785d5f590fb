#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/layer_run.hpp"

namespace megamoe::cli {

/// A store of quantised tokens that calls take windows from, each call other ones; read by all
/// ranks.
class BenchTokens {
 public:
  BenchTokens(const Problem& problem, std::int64_t count);

  /// Puts `count` tokens into a rank's inputs: those of its `call`-th window.
  void load(Layer& layer, int rank, int count, int call) const;

  std::int64_t count() const { return count_; }
  std::uint8_t* codes(std::int64_t token);
  std::uint8_t* scales(std::int64_t token);
  std::int64_t* ids(std::int64_t token);
  float* weights(std::int64_t token);

 private:
  Problem problem_;
  std::int64_t count_;
  std::vector<std::uint8_t> codes_, scales_;
  std::vector<std::int64_t> ids_;
  std::vector<float> weights_;
};

/// What a bench runs: a layer and its tokens.
struct BenchRun {
  LayerRun run;
  std::unique_ptr<BenchTokens> tokens;
};

/// `most`: the most tokens that a rank brings to one call.
BenchRun bench_of_files(const WeightArguments& weights,
                        const std::string& input_path,
                        const ActivationArguments& activation,
                        const RunArguments& arguments,
                        int most);
BenchRun bench_of_shape(const LayerShape& shape,
                        std::uint64_t seed,
                        const ActivationArguments& activation,
                        const RunArguments& arguments,
                        int most);

}  // namespace megamoe::cli
