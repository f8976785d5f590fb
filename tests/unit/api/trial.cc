#include "trial.hpp"

#include <algorithm>

#include "megamoe/layer.hpp"

namespace megamoe {
namespace {

SyntheticLayer synthetic_of(const Problem& p, std::uint64_t seed) {
  return {.hidden = p.hidden,
          .intermediate = p.intermediate,
          .experts = p.experts,
          .topk = p.topk,
          .tokens = std::int64_t{p.capacity} * p.ranks,
          .ranks = p.ranks,
          .seed = seed,
          .routing = Routing::kZipf};
}

std::string bytes_of(const std::vector<std::uint16_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::uint16_t)};
}

}  // namespace

Trial::Trial(const Problem& problem, std::uint64_t seed)
    : problem_(problem), synthetic_(synthetic_of(problem, seed)), routing_(synthetic_) {
  const auto source = make_synthetic_weights(synthetic_);
  const auto cells = static_cast<std::size_t>(problem.hidden * problem.intermediate);
  const auto append = [](std::vector<std::uint8_t>& to, const std::uint8_t* from, std::size_t n) {
    to.insert(to.end(), from, from + n);
  };
  ExpertScratch scratch;
  for (int expert = 0; expert < problem.experts; ++expert) {
    const WeightView view = source->expert(expert, scratch);
    append(linear1_, view.linear1, cells);
    append(linear1_scale_, view.linear1_scale, cells / 16);
    append(linear2_, view.linear2, cells / 2);
    append(linear2_scale_, view.linear2_scale, cells / 32);
  }
}

Problem Trial::small(int ranks) {
  return {.ranks = ranks,
          .experts = 2 * ranks,
          .topk = std::min(3, 2 * ranks),
          .hidden = 64,
          .intermediate = 96,
          .capacity = 24};
}

Problem Trial::problem_of(int ranks) const {
  Problem problem = problem_;
  problem.ranks = ranks;
  return problem;
}

void Trial::set_experts(Layer& layer, int rank) const {
  const WeightView all{.linear1 = linear1_.data(),
                       .linear1_scale = linear1_scale_.data(),
                       .linear2 = linear2_.data(),
                       .linear2_scale = linear2_scale_.data()};
  const int count = layer.problem().experts_per_rank();
  for (int expert = 0; expert < count; ++expert)
    layer.set_expert(expert, all.expert(rank * count + expert, problem_));
}

void Trial::set_tokens(Layer& layer, std::int64_t first, std::int64_t num_tokens) const {
  const auto hidden = static_cast<std::size_t>(problem_.hidden);
  std::vector<Bfloat16> row(hidden);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(problem_.topk));
  std::vector<float> weights(ids.size());
  for (std::int64_t token = 0; token < num_tokens; ++token) {
    fill_synthetic_row(synthetic_, first + token, row.data());
    layer.set_tokens(token, 1, reinterpret_cast<const std::uint16_t*>(row.data()));
    routing_.fill(first + token, ids.data(), weights.data());
    layer.set_routing(token, 1, ids.data(), weights.data());
  }
}

std::string Trial::forward(Layer& layer, std::int64_t first, std::int64_t num_tokens) const {
  set_tokens(layer, first, num_tokens);
  std::vector<std::uint16_t> y(static_cast<std::size_t>(num_tokens * problem_.hidden), 0xFFFF);
  layer.forward({num_tokens, y.empty() ? nullptr : y.data()});
  return bytes_of(y);
}

ReferenceOutput Trial::reference(std::int64_t num_tokens) const {
  const auto hidden = static_cast<std::size_t>(problem_.hidden);
  const auto topk = static_cast<std::size_t>(problem_.topk);
  const auto tokens = static_cast<std::size_t>(num_tokens);
  std::vector<std::uint8_t> codes(tokens * hidden), scales(tokens * hidden / 32);
  std::vector<std::int64_t> ids(tokens * topk);
  std::vector<float> weights(tokens * topk);
  std::vector<Bfloat16> row(hidden);
  for (std::size_t token = 0; token < tokens; ++token) {
    fill_synthetic_row(synthetic_, static_cast<std::int64_t>(token), row.data());
    quantize_rows(reinterpret_cast<const std::uint16_t*>(row.data()),
                  1,
                  problem_.hidden,
                  &codes[token * hidden],
                  &scales[token * hidden / 32]);
    routing_.fill(static_cast<std::int64_t>(token), &ids[token * topk], &weights[token * topk]);
  }
  const WeightView all{.linear1 = linear1_.data(),
                       .linear1_scale = linear1_scale_.data(),
                       .linear2 = linear2_.data(),
                       .linear2_scale = linear2_scale_.data()};
  return reference_forward(
      problem_, all, {num_tokens, codes.data(), scales.data(), ids.data(), weights.data()});
}

std::string run_once(Group& group,
                     const Trial& trial,
                     const LayerOptions& options,
                     std::int64_t first,
                     std::int64_t num_tokens) {
  Layer layer(group, trial.problem_of(group.ranks()), options);
  trial.set_experts(layer, group.rank());
  return trial.forward(layer, first, num_tokens);
}

std::vector<std::string> texts_of(const LaunchResult& result) {
  std::vector<std::string> texts;
  for (const RankOutcome& rank : result.ranks)
    texts.push_back(rank.is_good ? rank.result : "error: " + rank.sentence);
  return texts;
}

std::string described(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument: return std::string("invalid argument: ") + error.what();
    case ErrorCode::kBadFile: return std::string("bad file: ") + error.what();
    case ErrorCode::kUnsupportedMachine: return std::string("unsupported machine: ") + error.what();
    case ErrorCode::kRunFailed: return std::string("run failed: ") + error.what();
    case ErrorCode::kInternal: return std::string("internal: ") + error.what();
  }
  return error.what();
}

LayerOptions test_options() {
  LayerOptions options;
  options.machine = "cpu";
  options.workers = 1;
  options.timeout_ms = 20'000;
  options.poison = true;
  return options;
}

}  // namespace megamoe
