#include "runtime/gpu/sm90_kernels.hpp"

#include "machine/sm90/launch.hpp"
#include "runtime/gpu/sm90_weights.hpp"

namespace megamoe {

std::string Sm90Kernels::name(const CardFacts&) const {
  return operands_ == sm90::Operands::kFloat8 ? "sm90/fast" : "sm90/exact";
}

bool Sm90Kernels::has_kernel(int block_m) const {
  return sm90::instance_of(operands_, block_m).kernel != nullptr;
}

void Sm90Kernels::load(const CardFacts&) {
  sm90::load_kernels(operands_);
}

std::unique_ptr<MachineWeights> Sm90Kernels::make_weights(const Problem& problem,
                                                          DeviceMemory& memory) {
  return std::make_unique<Sm90Weights>(problem, operands_, memory);
}

void Sm90Kernels::launch(const KernelCall& call, cudaStream_t stream) const {
  const auto& packed = static_cast<const Sm90Weights&>(call.weights);
  const sm90::KernelArgs args{.linear1 = packed.arguments(Phase::kLinear1),
                              .linear2 = packed.arguments(Phase::kLinear2),
                              .call = call.call,
                              .options = call.options};
  sm90::launch(args, operands_, call.workers, sm90::CoResidence::kByDevice, stream);
}

}  // namespace megamoe
