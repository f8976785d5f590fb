#include "runtime/gpu/emulated_kernels.hpp"

#include <map>
#include <mutex>
#include <optional>

#include "base/check.hpp"
#include "machine/sm100/emulated/kernels.hpp"
#include "runtime/gpu/sm100_kernels.hpp"

namespace megamoe {
namespace {

/// The emulation's bound is of a whole launch and ends in a trap, which takes the process's card
/// with it: after a minute's work the kernel's own waits, second-hand ones too, still give up
/// first. 0: none, as theirs.
std::uint64_t emulation_timeout(std::uint64_t timeout_ms) {
  constexpr std::uint64_t kWork = 60'000;
  constexpr std::uint64_t kBoundsOfAWait = 6;  // fault.hpp: Patience
  return timeout_ms == 0 ? 0 : kWork + kBoundsOfAWait * timeout_ms;
}

/// One rank's. Tensor memory of all the card's SMs, and a copy of each kernel.
class EmulatedKernels : public Sm100Kernels {
 public:
  explicit EmulatedKernels(std::uint64_t timeout_ms) : timeout_ms_(timeout_ms) {}

  std::string name(const CardFacts& card) const override {
    return sentence("sm100-emulated (functional emulation on ", card.name, ")");
  }
  bool has_kernel(int block_m) const override { return sm100::has_emulated_instance(block_m); }

  void load(const CardFacts& card) override {
    emulator_.emplace(
        emulation::EmulatorOptions{.ctas = card.sms, .timeout_ms = emulation_timeout(timeout_ms_)});
    for (const int block_m : sm100::kBlockSizes)
      if (has_kernel(block_m))
        instances_.emplace(block_m, sm100::emulated_instance_of(*emulator_, block_m));
    Sm100Kernels::load(card);
  }

  std::unique_ptr<MachineWeights> make_weights(const Problem& problem,
                                               DeviceMemory& memory) override {
    const std::lock_guard one_at_a_time(making_);  // siblings may be made by several threads
    auto weights = Sm100Kernels::make_weights(problem, memory);
    emulator_->prepare();
    return weights;
  }

  void require_good(cudaError_t result, const char*) const override { emulator_->check(result); }

 private:
  sm100::KernelInstance instance_of(int block_m) const override { return instances_.at(block_m); }
  CUtensorMap encode(const gpu::TensorMapRequest& request) override {
    return emulator_->encode(request);
  }
  /// As whole calls were run on a card through the emulation: ranks' shares of SMs fit together.
  gpu::CoResidence co_residence() const override { return gpu::CoResidence::kByCaller; }

  std::uint64_t timeout_ms_;
  std::optional<emulation::Emulator> emulator_;
  std::map<int, sm100::KernelInstance> instances_;
  std::mutex making_;
};

}  // namespace

std::string why_no_emulated_kernels() {
  return {};
}

std::unique_ptr<KernelSet> make_emulated_kernels(const LayerOptions& options) {
  return std::make_unique<EmulatedKernels>(options.timeout_ms);
}

}  // namespace megamoe
