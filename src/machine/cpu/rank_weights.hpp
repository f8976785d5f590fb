#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "machine/cpu/tile/packed_weights.hpp"
#include "megamoe/problem.hpp"
#include "megamoe/weights.hpp"

namespace megamoe::cpu {

/// The packed weights of one rank's experts; owns them. Packed expert by expert, so that a caller
/// may drop each one's source before it reads the next.
class RankWeights {
 public:
  explicit RankWeights(const Problem& problem);

  /// Packs a local expert from the first expert of `view`, which is not needed afterwards.
  void pack(int local_expert, const WeightView& view);

  PackedMatrix linear1(int local_expert) const;
  PackedMatrix linear2(int local_expert) const;
  const float* linear1_bias(int local_expert) const;  ///< null without biases
  const float* linear2_bias(int local_expert) const;

  /// Bytes that a rank's packed weights take.
  static std::size_t bytes(const Problem& problem);

 private:
  struct Release {
    std::size_t bytes;
    void operator()(std::byte* memory) const;
  };
  std::byte* expert(int local_expert) const;

  Problem problem_;
  std::unique_ptr<std::byte, Release> packed_;
  std::vector<float> linear1_bias_, linear2_bias_;
};

}  // namespace megamoe::cpu
