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
  /// rank * experts_per_rank() + local_expert. Replacing an expert between calls is legal, and
  /// waits for those that this rank began. Throws Error(kInvalidArgument) for weights that the
  /// layer's numerics can't hold exactly (fits_fast_numerics()).
  void set_expert(int local_expert, const WeightView& weights);

  LayerInputs inputs() const;

  /// Quantises rows of bf16 into the inputs' tokens and scales, from token `first` on; `rows` is
  /// [num_tokens][hidden]. This and the next two take host memory on every machine and return when
  /// it is copied, after the calls that this rank began have ended (a replayed graph's are for the
  /// caller to await).
  void set_tokens(std::int64_t first, std::int64_t num_tokens, const std::uint16_t* rows);

  /// Copies E4M3 codes [num_tokens][hidden] and UE8M0 scales [num_tokens][hidden / 32].
  void set_quantized_tokens(std::int64_t first,
                            std::int64_t num_tokens,
                            const std::uint8_t* codes,
                            const std::uint8_t* scales);

  /// Copies ids and weights [num_tokens][topk]; an id below 0 masks its slot.
  void set_routing(std::int64_t first,
                   std::int64_t num_tokens,
                   const std::int64_t* ids,
                   const float* weights);

  /// Collective, num_tokens == 0 included. Throws on every rank, with the cause in a sentence:
  ///   Error(kInvalidArgument)  some rank's input is refused (too many tokens, an id past the last
  ///                            expert, an expert without weights, a misaligned output). Nothing
  ///                            was written; the next forward may come at once.
  ///   Error(kRunFailed)        a wait outlasted its bound, or a rank died or left. What `output`
  ///                            holds is unspecified; no forward until reset().
  CallReport forward(const ForwardArguments& arguments);

  /// GPU machines: the same call put on a stream of the caller's; returns at once, waits for
  /// nothing and may be captured in a CUDA graph. Collective as forward() is: on every rank the
  /// calls, replays included, come in the same order. What the stream did before it (inputs,
  /// routing) is seen by the call, what the stream does after it sees `output`. Calls of siblings
  /// may follow each other without a look in between.
  ///
  /// How the calls ended is told by wait(). After one that was abandoned the others do nothing; one
  /// that was refused wrote nothing. Throws itself only for what no call can carry: a layer that
  /// must be reset(), a stream that can't be used (Error(kInvalidArgument)), a launch that CUDA
  /// refuses (Error(kRunFailed)).
  void enqueue(const StreamCall& call);

  /// Waits for what is on the stream (a cudaStream_t) so far and looks how this layer's and its
  /// siblings' calls ended: throws as forward() does, for the first one that was refused since the
  /// last look. The report is the last call's. Not collective.
  CallReport wait(void* stream);

  /// Collective, after a forward that failed with kRunFailed on any rank (legal after a good one):
  /// makes the layer and its siblings usable again, if all ranks live.
  void reset();

  /// Collective, for benchmarks: some equal calls, timed one by one, with the inputs as they are.
  /// Their output goes nowhere.
  CallTimings time_calls(const TimedCalls& what);

  const Problem& problem() const;
  const Plan& plan() const;               ///< of the last call; before the first: of the layer
  const std::string& machine() const;     ///< what runs it: "cpu/avx512-bf16", "sm90/fast"
  int device() const;                     ///< this rank's card, by CUDA's number; -1: none, and
                                          ///< inputs lie in host memory
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

/// Whether numerics "fast" of machine sm90 hold the first expert of `weights` exactly: the
/// exponents of each row span no more binades than they have. If not, the layer takes "exact".
bool fits_fast_numerics(const Problem& problem, const WeightView& weights);

}  // namespace megamoe
