#pragma once

#include <memory>
#include <vector>

#include "megamoe/call_report.hpp"
#include "runtime/station.hpp"

namespace megamoe {

/// One rank's layer: the weights of its experts, and the station that runs it.
class RankLayer {
 public:
  explicit RankLayer(std::shared_ptr<Station> station);

  std::unique_ptr<RankLayer> sibling() const;
  void set_expert(int local_expert, const WeightView& weights);
  LayerInputs inputs() const;
  CallReport forward(const ForwardArguments& arguments);
  void reset();

  Station& station() const { return *station_; }
  std::uint64_t weight_bytes() const { return weights_->bytes(); }

 private:
  Refusal refusal_of(const ForwardArguments& arguments) const;
  Refusal first_bad_id(std::int64_t num_tokens) const;
  CallReport report_of(std::int64_t num_tokens, const Plan& plan) const;

  std::shared_ptr<Station> station_;
  std::unique_ptr<MachineWeights> weights_;
  std::vector<bool> has_expert_;
};

}  // namespace megamoe
