#include "device_layer.hpp"

namespace megamoe::test {

PackedExperts pack_experts(const Problem& problem,
                           const WeightView& of_rank,
                           sm90::Operands operands,
                           Phase phase) {
  const sm90::WeightLayout layout = sm90::layout_of(problem, operands, phase);
  const auto bytes = static_cast<std::size_t>(layout.bytes());
  const auto rows = static_cast<std::size_t>(layout.padded_rows());
  const auto experts = static_cast<std::size_t>(problem.experts_per_rank());
  PackedExperts packed{std::vector<std::byte>(experts * bytes),
                       std::vector<std::int16_t>(experts * rows)};
  parallel_for(problem.experts_per_rank(), [&](int expert) {
    const WeightView view = of_rank.expert(expert, problem);
    const bool is_linear1 = phase == Phase::kLinear1;
    const sm90::CanonicalLinear linear{is_linear1 ? view.linear1 : view.linear2,
                                       is_linear1 ? view.linear1_scale : view.linear2_scale,
                                       is_linear1};
    const auto e = static_cast<std::size_t>(expert);
    sm90::pack(layout,
               linear,
               std::span(packed.codes).subspan(e * bytes, bytes),
               std::span(packed.bases).subspan(e * rows, rows));
  });
  return packed;
}

DeviceLayer::DeviceLayer(const Problem& problem,
                         const RandomWeights& weights,
                         const Options& options)
    : DeviceRanks(problem, sm90::pool_format(problem, options.operands), options.pool_rows),
      options_(options),
      weights_(static_cast<std::size_t>(problem.ranks)) {
  for (int r = 0; r < problem.ranks; ++r) {
    sm90::KernelArgs& args = weights_[static_cast<std::size_t>(r)].args;
    pack(weights_[static_cast<std::size_t>(r)], r, weights);
    args.call = call_of(r);
    args.call.experts_per_wave = options.experts_per_wave;
    args.options.timeout_ms = options.timeout_ms;
    set_block_m(r, options.block_m);
  }
  set_biases(weights);
}

void DeviceLayer::set_block_m(int rank, int block_m) {
  args(rank).call.ring =
      sm90::ring_of(problem(), options_.operands, block_m, workspace().pool_rows);
}

void DeviceLayer::pack(RankWeights& rank, int index, const RandomWeights& weights) {
  const WeightView view = weights.view().expert(index * problem().experts_per_rank(), problem());
  const auto one = [&](Phase phase, DeviceBytes& codes, DeviceBytes& bases) {
    const PackedExperts packed = pack_experts(problem(), view, options_.operands, phase);
    codes = upload(packed.codes);
    bases = upload(packed.bases);
    return sm90::LinearWeights{codes.as(), bases.as<std::int16_t>(), nullptr};
  };
  rank.args.linear1 = one(Phase::kLinear1, rank.linear1, rank.linear1_bases);
  rank.args.linear2 = one(Phase::kLinear2, rank.linear2, rank.linear2_bases);
}

void DeviceLayer::set_biases(const RandomWeights& weights) {
  for (int r = 0; r < problem().ranks; ++r) {
    RankWeights& rank = weights_[static_cast<std::size_t>(r)];
    rank.biases = upload_biases(problem(), weights, r);
    rank.args.linear1.bias = rank.biases.linear1.as<float>();
    rank.args.linear2.bias = rank.biases.linear2.as<float>();
  }
}

void DeviceLayer::prepare() {
  clear_outputs();
  for (const RankWeights& rank : weights_) {
    // A kernel that is loaded at its first launch may wait for those that run, and they for it.
    cudaFuncAttributes attributes{};
    const auto instance = sm90::instance_of(options_.operands, rank.args.call.ring.block_m);
    expect_cuda(cudaFuncGetAttributes(&attributes, instance.kernel), "loading a kernel");
  }
  expect_cuda(cudaDeviceSynchronize(), "preparing the call");
}

void DeviceLayer::launch(int rank, int workers) {
  sm90::launch(args(rank), options_.operands, workers, options_.co_residence, stream(rank));
}

void DeviceLayer::forward(int workers) {
  prepare();
  for (int r = 0; r < problem().ranks; ++r)
    launch(r, workers);
  expect_cuda(cudaDeviceSynchronize(), "the call");
  expect_no_fault();
}

bool DeviceLayer::is_intact() const {
  bool all = DeviceRanks::is_intact();
  for (const RankWeights& rank : weights_)
    for (const DeviceBytes* bytes : {&rank.linear1,
                                     &rank.linear1_bases,
                                     &rank.biases.linear1,
                                     &rank.linear2,
                                     &rank.linear2_bases,
                                     &rank.biases.linear2})
      all = all && bytes->is_intact();
  return all;
}

}  // namespace megamoe::test
