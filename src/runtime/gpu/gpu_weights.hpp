#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "machine/cuda/canonical_linear.hpp"
#include "protocol/schedule.hpp"
#include "runtime/gpu/device_memory.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {

/// A rank's experts on its card: of each linear codes, what goes beside them, and biases. Packed on
/// the host and uploaded; what is packed how is the machine's.
class GpuWeights : public MachineWeights {
 public:
  void pack(int local_expert, const WeightView& view) override;
  std::uint64_t bytes() const override;

 protected:
  /// One expert's linear, in bytes.
  struct Sizes {
    std::uint64_t codes = 0, beside = 0, biases = 0;
  };
  /// One linear of all experts.
  struct Linear {
    Sizes of_expert;
    std::shared_ptr<Segment> codes, beside, biases;  // biases: null without
  };
  struct Source {
    Phase phase = Phase::kLinear1;
    int local_expert = 0;
    gpu::CanonicalLinear linear;
  };
  struct Packed {
    std::span<std::byte> codes, beside;
  };

  GpuWeights(const Problem& problem, DeviceMemory& memory);
  /// Of `rows` output features.
  Linear make_linear(std::uint64_t code_bytes, std::uint64_t beside_bytes, int rows) const;

  virtual const Linear& linear(Phase phase) const = 0;
  virtual void pack_linear(const Source& from, const Packed& to) const = 0;

 private:
  void pack_one(const Source& from, const float* biases);

  DeviceMemory& memory_;  // of the machine; not touched when this goes, which may be later
  std::uint64_t experts_;
  bool has_biases_;
  std::vector<std::byte> codes_, beside_;  // one linear on its way
};

}  // namespace megamoe
