#include "emulated_layer.hpp"

#include "machine/sm100/pack.hpp"

namespace megamoe::test {
namespace {

struct PackedExperts {
  std::vector<std::byte> codes, scales;
};

PackedExperts pack_experts(const Problem& problem, const WeightView& of_rank, Phase phase) {
  const sm100::WeightLayout layout = sm100::layout_of(problem, phase);
  const auto experts = static_cast<std::size_t>(problem.experts_per_rank());
  const auto code_bytes = static_cast<std::size_t>(layout.code_bytes());
  const auto scale_bytes = static_cast<std::size_t>(layout.scale_bytes());
  PackedExperts packed{std::vector<std::byte>(experts * code_bytes),
                       std::vector<std::byte>(experts * scale_bytes)};
  parallel_for(problem.experts_per_rank(), [&](int expert) {
    const WeightView view = of_rank.expert(expert, problem);
    const bool is_linear1 = phase == Phase::kLinear1;
    const auto e = static_cast<std::size_t>(expert);
    sm100::pack(layout,
                {is_linear1 ? view.linear1 : view.linear2,
                 is_linear1 ? view.linear1_scale : view.linear2_scale,
                 is_linear1},
                std::span(packed.codes).subspan(e * code_bytes, code_bytes),
                std::span(packed.scales).subspan(e * scale_bytes, scale_bytes));
  });
  return packed;
}

}  // namespace

EmulatedLayer::EmulatedLayer(const Problem& problem,
                             const RandomWeights& weights,
                             const Options& options)
    : DeviceRanks(problem, sm100::pool_format(problem), options.pool_rows), options_(options) {
  for (int r = 0; r < problem.ranks; ++r)
    add_rank(r, weights);
  for (Rank& rank : ranks_)
    rank.emulator.prepare();
}

void EmulatedLayer::add_rank(int rank, const RandomWeights& weights) {
  Rank& state = ranks_.emplace_back(
      emulation::EmulatorOptions{.ctas = options_.workers, .modes = options_.modes});
  state.kernel = sm100::emulated_instance_of(state.emulator, options_.block_m);
  pack(state, rank, weights);
  state.biases = upload_biases(problem(), weights, rank);
  state.args.linear1.bias = state.biases.linear1.as<float>();
  state.args.linear2.bias = state.biases.linear2.as<float>();
  Call& call = state.args.call;
  call = call_of(rank);
  call.experts_per_wave = options_.experts_per_wave;
  call.ring = {.blocks = static_cast<int>(workspace().pool_rows / options_.block_m),
               .block_m = options_.block_m,
               .linear1_blocks = sm100::layout_of(problem(), Phase::kLinear1).blocks(),
               .linear2_blocks = sm100::layout_of(problem(), Phase::kLinear2).blocks()};
  state.args.options.timeout_ms = options_.timeout_ms;
}

void EmulatedLayer::pack(Rank& state, int rank, const RandomWeights& weights) {
  const WeightView view = weights.view().expert(rank * problem().experts_per_rank(), problem());
  const auto one = [&](Phase phase, DeviceBytes& codes, DeviceBytes& scales) {
    const PackedExperts packed = pack_experts(problem(), view, phase);
    codes = upload(packed.codes);
    scales = upload(packed.scales);
    const CUtensorMap map =
        state.emulator.encode(sm100::weight_map_request(problem(), phase, codes.as()));
    return sm100::LinearWeights{sm100::to_argument(map), scales.as(), nullptr};
  };
  state.args.linear1 = one(Phase::kLinear1, state.linear1, state.linear1_scales);
  state.args.linear2 = one(Phase::kLinear2, state.linear2, state.linear2_scales);
}

void EmulatedLayer::prepare() {
  clear_outputs();
  for (const Rank& rank : ranks_) {
    // A kernel that is loaded at its first launch may wait for those that run, and they for it.
    cudaFuncAttributes attributes{};
    expect_cuda(cudaFuncGetAttributes(&attributes, rank.kernel.kernel), "loading a kernel");
    expect_cuda(cudaFuncSetAttribute(rank.kernel.kernel,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     rank.kernel.shared_bytes(problem())),
                "setting a kernel's shared memory");
  }
  expect_cuda(cudaDeviceSynchronize(), "preparing the call");
}

void EmulatedLayer::launch(int rank) {
  const Rank& state = ranks_[static_cast<std::size_t>(rank)];
  sm100::launch(state.kernel, state.args, options_.workers, options_.co_residence, stream(rank));
}

void EmulatedLayer::finish() {
  const cudaError_t result = cudaDeviceSynchronize();
  for (const Rank& rank : ranks_)
    rank.emulator.check(result);
}

void EmulatedLayer::forward() {
  prepare();
  for (int r = 0; r < problem().ranks; ++r)
    launch(r);
  finish();
  expect_no_fault();
}

}  // namespace megamoe::test
