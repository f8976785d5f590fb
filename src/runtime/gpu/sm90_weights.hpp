#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/sm90/kernel_args.hpp"
#include "runtime/gpu/device_memory.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {

/// A rank's experts on its card, in the Hopper machine's layout.
class Sm90Weights : public MachineWeights {
 public:
  Sm90Weights(const Problem& problem, sm90::Operands operands, DeviceMemory& memory);

  /// Packs on the host and uploads. A layer that fp8 can't hold exactly is refused by expert and
  /// row.
  void pack(int local_expert, const WeightView& view) override;
  std::uint64_t bytes() const override;

  sm90::LinearWeights linear1() const { return linear1_.arguments(); }
  sm90::LinearWeights linear2() const { return linear2_.arguments(); }

 private:
  /// All experts' part of one linear.
  struct Linear {
    sm90::WeightLayout layout;
    std::shared_ptr<Segment> codes, bases, bias;  // bias: null without

    sm90::LinearWeights arguments() const;
  };
  /// One expert's in canonical form.
  struct Source {
    const std::uint8_t* codes;
    const std::uint8_t* scales;
    const float* bias;
    bool is_gate_up;
  };

  Linear make_linear(const Problem& problem, Phase phase) const;
  void pack_linear(const Linear& to, int local_expert, const Source& from);

  DeviceMemory& memory_;
  sm90::Operands operands_;
  int experts_;
  Linear linear1_, linear2_;
  std::vector<std::byte> packed_;  // one linear on its way
  std::vector<std::int16_t> bases_;
};

}  // namespace megamoe
