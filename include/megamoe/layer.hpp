#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "megamoe/call_report.hpp"
#include "megamoe/group.hpp"
#include "megamoe/layer_options.hpp"
#include "megamoe/problem.hpp"
#include "megamoe/weights.hpp"

namespace megamoe {

struct Plan;
class RankLayer;  // src/runtime

/// One rank's part of a mixture-of-experts layer: its experts' weights, its workers, its symmetric
/// memory. Move-only; one call at a time (a second one at once is refused).
class Layer {
 public:
  /// Collective. Throws the same Error on every rank when the problem is out of bounds, the ranks'
  /// configurations differ (naming the field, both values and both ranks), or some rank can't get
  /// its memory or its machine.
  Layer(Group& group, const Problem& problem, const LayerOptions& options = {});
  ~Layer();
  Layer(Layer&&) noexcept;
  Layer& operator=(Layer&&) noexcept;

  /// Another layer of the same problem that shares this one's symmetric memory, inputs and workers,
  /// with weights of its own: what a model of many layers takes, as only one runs at a time. Not
  /// collective, but the ranks' calls must name the same layers in the same order.
  Layer sibling() const;

  /// Takes a copy of the first expert of `weights`, packed for the machine. Local: expert
  /// rank * experts_per_rank() + local_expert. Replacing an expert between calls is legal.
  void set_expert(int local_expert, const WeightView& weights);

  LayerInputs inputs() const;

  /// Quantises rows of bf16 into the inputs' tokens and scales, from token `first` on; `rows` is
  /// [num_tokens][hidden].
  void set_tokens(std::int64_t first, std::int64_t num_tokens, const std::uint16_t* rows);

  /// Collective, num_tokens == 0 included. Throws on every rank, with the cause in a sentence:
  ///   Error(kInvalidArgument)  some rank's input is refused (too many tokens, an id past the last
  ///                            expert, an expert without weights, a misaligned output). Nothing
  ///                            was written; the next forward may come at once.
  ///   Error(kRunFailed)        a wait outlasted its bound, or a rank died or left. What `output`
  ///                            holds is unspecified; no forward until reset().
  CallReport forward(const ForwardArguments& arguments);

  /// Collective, after a forward that failed with kRunFailed on any rank (legal after a good one):
  /// makes the layer and its siblings usable again, if all ranks live.
  void reset();

  const Problem& problem() const;
  const Plan& plan() const;               ///< of the last call; before the first: of the layer
  const std::string& machine() const;     ///< what runs it, such as "cpu/avx512-bf16"
  int workers() const;                    ///< of this rank
  std::uint64_t symmetric_bytes() const;  ///< of this rank
  std::uint64_t weight_bytes() const;     ///< of this rank's packed weights

  /// Bytes of symmetric memory that every rank of such a layer takes.
  static std::uint64_t symmetric_bytes(const Problem& problem, const LayerOptions& options);

 private:
  explicit Layer(std::unique_ptr<RankLayer> rank_layer);
  std::unique_ptr<RankLayer> rank_layer_;
};

/// Quantises `rows` rows of `width` bf16 values (a multiple of 32) to E4M3 codes [rows][width] and
/// UE8M0 scales [rows][width / 32], one scale per 32.
void quantize_rows(const std::uint16_t* values,
                   std::int64_t rows,
                   int width,
                   std::uint8_t* codes,
                   std::uint8_t* scales);

}  // namespace megamoe
