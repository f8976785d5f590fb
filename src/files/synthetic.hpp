#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "files/weight_source.hpp"

namespace megamoe {

/// How a synthetic layer's tokens choose experts. In all of them the k ids of one token differ.
enum class Routing : std::uint8_t {
  kUniform,  // all experts alike
  kZipf,  // the n-th most popular expert 1/n as popular as the first; which one that is, the seed
          // says
  kHot,   // one expert in sixteen (at least one) draws three quarters of the choices
};

/// Throws Error(kInvalidArgument) with the names that there are.
Routing parse_routing(const std::string& name);

/// A layer and its tokens, all of it a function of these values; the same bytes on every machine.
struct SyntheticLayer {
  int hidden = 32;
  int intermediate = 32;
  int experts = 1;
  int topk = 1;
  std::int64_t tokens = 0;  // over all ranks
  int ranks = 1;
  std::uint64_t seed = 0;
  Routing routing = Routing::kUniform;
};

/// Throws Error(kInvalidArgument) naming the field, its value and the bound.
void validate(const SyntheticLayer& layer);

/// Its weights as a source, without a file. Scales follow the width of the sum, so that gate, up
/// and y are of the order of 1 for every shape.
std::unique_ptr<WeightSource> make_synthetic_weights(const SyntheticLayer& layer);

/// One token: bf16 values near a normal distribution, one column in 128 eight times as large (as
/// real activations have).
void fill_synthetic_row(const SyntheticLayer& layer, std::int64_t token, Bfloat16* row);

/// Tokens' choices; made once, as popularity takes a table.
class SyntheticRouting {
 public:
  explicit SyntheticRouting(const SyntheticLayer& layer);
  /// `topk` different ids, and positive weights that sum to 1.
  void fill(std::int64_t token, std::int64_t* ids, float* weights) const;

 private:
  int draw(std::uint64_t counter) const;

  SyntheticLayer layer_;
  std::vector<std::uint64_t> popularity_;  // running sums
};

/// Told how many of how many bytes are done.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Writes the weights as a layer file, an expert at a time; `progress` may be empty.
void write_synthetic_weights(const std::string& path,
                             const SyntheticLayer& layer,
                             const Progress& progress);

/// Writes x, topk_ids, topk_weights and tokens_per_rank (an even split).
void write_synthetic_input(const std::string& path,
                           const SyntheticLayer& layer,
                           const Progress& progress);

}  // namespace megamoe
