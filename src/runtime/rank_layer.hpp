#pragma once

#include <memory>
#include <vector>

#include "megamoe/call_report.hpp"
#include "runtime/station.hpp"

namespace megamoe {

/// Rows of tokens in host memory, as a layer takes them: E4M3 codes and their UE8M0 scales.
struct TokenRows {
  std::int64_t first = 0;  ///< the token of the inputs that the first row becomes
  std::int64_t count = 0;
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scales = nullptr;
};

/// Their routing.
struct RoutingRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  const std::int64_t* ids = nullptr;
  const float* weights = nullptr;
};

/// One rank's layer: the weights of its experts, and the station that runs it.
class RankLayer {
 public:
  explicit RankLayer(std::shared_ptr<Station> station);

  std::unique_ptr<RankLayer> sibling() const;
  void set_expert(int local_expert, const WeightView& weights);
  LayerInputs inputs() const;
  void write(const TokenRows& rows);
  void write(const RoutingRows& rows);

  /// Begins a call and waits for it.
  CallReport forward(const ForwardArguments& arguments);
  /// Begins a call on a stream.
  void enqueue(const StreamCall& call);
  /// Waits for what is on the stream, and looks how the calls on it ended.
  CallReport wait(void* stream);
  CallTimings time_calls(const TimedCalls& what);
  void reset();

  Station& station() const { return *station_; }
  std::uint64_t weight_bytes() const { return weights_->bytes(); }

 private:
  void begin(const StreamCall& asked, std::uint16_t* output, const CallOrder& order);
  CallOrder order_on(void* stream) const;
  Call call_of(const StreamCall& asked, std::uint16_t* output);
  CallReport conclude(const CallOrder& order);
  std::uint16_t* staged_output();
  Refusal refusal_of(const StreamCall& asked) const;
  Refusal first_bad_id(std::int64_t num_tokens) const;
  CallReport report() const;
  MaskedIds take_masked_ids() const;
  std::uint64_t rows_of_own(std::int64_t num_tokens) const;

  // The station is the last member, so that it goes first: giving memory back may wait for kernels
  // of peers, which are told then not to wait for this rank.
  std::unique_ptr<MachineWeights> weights_;
  std::vector<bool> has_expert_;
  std::shared_ptr<Segment> staged_output_;  // for callers whose output the machine can't write
  std::shared_ptr<Station> station_;
};

}  // namespace megamoe
