#pragma once

#include <string_view>
#include <vector>

#include "files/checkpoint_layer.hpp"

namespace megamoe {

/// A weight matrix and the tensor of its scales (without a file where the family has none).
struct SplitMatrix {
  TensorView weight;
  TensorView scale;
};

/// An expert whose matrices are tensors of their own.
struct SplitExpert {
  SplitMatrix gate, up, down;

  void require_whole() const;
  void release() const;
};

struct SplitNames {
  std::string_view experts;  // ".mlp.experts."
  std::string_view gate, up, down;
  std::string_view scale;  // ".weight_scale_inv"
};

/// The experts of one layer, as many as config.json says and no fewer than the checkpoint has;
/// checks that they exist and fills the facts' sizes from expert 0. A scale tensor is asked for
/// where `has_scale(weight)`.
std::vector<SplitExpert> open_split_experts(Checkpoint& checkpoint,
                                            const WeightOptions& options,
                                            const SplitNames& names,
                                            bool (*has_scale)(const TensorView&),
                                            WeightFacts& facts);

/// Elements of a stored row of this many bytes or elements: two in a byte for U8 and I8.
std::int64_t elements_of_row(const TensorView& weight, std::int64_t stored);

}  // namespace megamoe
