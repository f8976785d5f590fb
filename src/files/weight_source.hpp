#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "megamoe/problem.hpp"
#include "megamoe/weights.hpp"
#include "numerics/mxfp4.hpp"

namespace megamoe {

/// Memory of one caller for the expert it reads now. Reuse it from expert to expert; one per
/// thread.
struct ExpertScratch {
  std::vector<std::uint8_t> linear1, linear1_scale, linear2, linear2_scale;
  std::vector<float> linear1_bias, linear2_bias;
  std::vector<float> row;
  QuantizationError error;  // grows with each expert that had to be quantised
};

/// What a source of weights says about its layer.
struct WeightFacts {
  std::string description;         // "layer 3 of /models/x (gpt-oss)"
  std::vector<std::string> files;  // of a checkpoint: config, index and all shards
  int experts = 0;
  int hidden = 0;
  int intermediate = 0;
  bool has_biases = false;
  bool is_requantised = false;  // the source is wider than MXFP4
  int suggested_topk = 0;       // 0: it does not say
  Activation suggested_activation;
};

/// The experts of one layer in canonical form, one at a time, so that a caller can pack them with
/// bounded memory. const members may be called from several threads, each with a scratch of its
/// own.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  const WeightFacts& facts() const { return facts_; }

  /// One expert (E = 1 of the canonical shapes). Points into the mapped file where that has the
  /// canonical layout, else into `scratch`; valid until the scratch's next use or release(). Throws
  /// Error(kBadFile) for values that can't be (a scale that is no power of two, a file that
  /// shrank).
  virtual WeightView expert(int expert, ExpertScratch& scratch) const = 0;

  /// The caller is done with this expert: its mapped pages no longer count as this process's
  /// memory.
  virtual void release(int expert) const = 0;

 protected:
  explicit WeightSource(WeightFacts facts) : facts_(std::move(facts)) {}

 private:
  WeightFacts facts_;
};

struct WeightOptions {
  std::optional<int> layer;       // --layer: which one of a checkpoint
  bool allow_requantise = false;  // --requantise: bf16 and FP8 checkpoints become MXFP4
};

/// Opens a layer file, or one layer of a checkpoint: `path` may be the safetensors file of either,
/// a checkpoint's folder, or its model.safetensors.index.json. All names, types and shapes are
/// checked before it returns.
std::unique_ptr<WeightSource> open_weights(const std::string& path, const WeightOptions& options);

}  // namespace megamoe
