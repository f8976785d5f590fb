#include "machine/cpu/rank_weights.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/check.hpp"

namespace megamoe::cpu {
namespace {

std::size_t linear1_bytes(const Problem& p) {
  return packed_bytes(2 * p.intermediate, p.hidden);
}

std::size_t expert_bytes(const Problem& p) {
  return linear1_bytes(p) + packed_bytes(p.hidden, p.intermediate);
}

/// Anonymous pages, large ones where the system has them: a call streams all of them.
std::byte* allocate_pages(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED,
          ErrorCode::kRunFailed,
          "the packed weights of a rank need ",
          bytes,
          " bytes, which the system does not give");
  madvise(memory, bytes, MADV_HUGEPAGE);  // advice only: without it all is the same but slower
  return static_cast<std::byte*>(memory);
}

}  // namespace

void RankWeights::Release::operator()(std::byte* memory) const {
  munmap(memory, bytes);
}

std::size_t RankWeights::bytes(const Problem& problem) {
  return expert_bytes(problem) * static_cast<std::size_t>(problem.experts_per_rank());
}

RankWeights::RankWeights(const Problem& problem)
    : problem_(problem), packed_(allocate_pages(bytes(problem)), Release{bytes(problem)}) {
  if (!problem.has_biases) return;
  const auto experts = static_cast<std::size_t>(problem.experts_per_rank());
  linear1_bias_.resize(experts * 2 * static_cast<std::size_t>(problem.intermediate));
  linear2_bias_.resize(experts * static_cast<std::size_t>(problem.hidden));
}

void RankWeights::pack(int local_expert, const WeightView& view) {
  MEGAMOE_CHECK(local_expert >= 0 && local_expert < problem_.experts_per_rank());
  std::byte* const to = expert(local_expert);
  pack_linear1(view, problem_, to);
  pack_linear2(view, problem_, to + linear1_bytes(problem_));
  if (!problem_.has_biases) return;
  const auto index = static_cast<std::ptrdiff_t>(local_expert);
  std::copy_n(view.linear1_bias,
              2 * problem_.intermediate,
              linear1_bias_.begin() + index * 2 * problem_.intermediate);
  std::copy_n(view.linear2_bias, problem_.hidden, linear2_bias_.begin() + index * problem_.hidden);
}

std::byte* RankWeights::expert(int local_expert) const {
  return packed_.get() + static_cast<std::size_t>(local_expert) * expert_bytes(problem_);
}

PackedMatrix RankWeights::linear1(int local_expert) const {
  return {.bytes = expert(local_expert), .rows = 2 * problem_.intermediate, .k = problem_.hidden};
}

PackedMatrix RankWeights::linear2(int local_expert) const {
  return {.bytes = expert(local_expert) + linear1_bytes(problem_),
          .rows = problem_.hidden,
          .k = problem_.intermediate};
}

const float* RankWeights::linear1_bias(int local_expert) const {
  if (!problem_.has_biases) return nullptr;
  return linear1_bias_.data() +
         static_cast<std::ptrdiff_t>(local_expert) * 2 * problem_.intermediate;
}

const float* RankWeights::linear2_bias(int local_expert) const {
  if (!problem_.has_biases) return nullptr;
  return linear2_bias_.data() + static_cast<std::ptrdiff_t>(local_expert) * problem_.hidden;
}

}  // namespace megamoe::cpu
