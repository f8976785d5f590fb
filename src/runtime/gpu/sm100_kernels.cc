#include "runtime/gpu/sm100_kernels.hpp"

#include "runtime/gpu/sm100_weights.hpp"

namespace megamoe {

std::string Sm100Kernels::name(const CardFacts&) const {
  return "sm100";
}

bool Sm100Kernels::has_kernel(int block_m) const {
  return sm100::instance_of(block_m).kernel != nullptr;
}

void Sm100Kernels::load(const CardFacts&) {
  for (const int block_m : sm100::kBlockSizes)
    if (has_kernel(block_m)) gpu::load_kernel(instance_of(block_m).kernel);
}

std::unique_ptr<MachineWeights> Sm100Kernels::make_weights(const Problem& problem,
                                                           DeviceMemory& memory) {
  return std::make_unique<Sm100Weights>(
      problem, memory, [this](const gpu::TensorMapRequest& request) { return encode(request); });
}

void Sm100Kernels::launch(const KernelCall& call, cudaStream_t stream) const {
  const auto& packed = static_cast<const Sm100Weights&>(call.weights);
  const sm100::KernelArgs args{.linear1 = packed.arguments(Phase::kLinear1),
                               .linear2 = packed.arguments(Phase::kLinear2),
                               .call = call.call,
                               .options = call.options};
  sm100::launch(instance_of(call.call.ring.block_m), args, call.workers, co_residence(), stream);
}

sm100::KernelInstance Sm100Kernels::instance_of(int block_m) const {
  return sm100::instance_of(block_m);
}

CUtensorMap Sm100Kernels::encode(const gpu::TensorMapRequest& request) {
  return gpu::encode_tensor_map(request);
}

}  // namespace megamoe
