#include "reference/layer_reference.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <span>
#include <thread>

#include "base/check.hpp"
#include "numerics/ue8m0.hpp"
#include "reference/expert_pass.hpp"

namespace megamoe {
namespace {

// Up to ExpertPass::kMostPairs (token, k) pairs of one expert.
struct Job {
  int expert;
  std::span<const std::int64_t> pairs;
};

struct Portion {
  std::int64_t first_token;
  std::int64_t num_tokens;
};

std::size_t extent(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

void check_shape(const Problem& problem, bool brings_biases) {
  MEGAMOE_CHECK(problem.hidden > 0 && problem.hidden % kGroupSize == 0);
  MEGAMOE_CHECK(problem.intermediate > 0 && problem.intermediate % kGroupSize == 0);
  MEGAMOE_CHECK(problem.experts > 0 && problem.topk > 0);
  require(problem.has_biases == brings_biases,
          ErrorCode::kInvalidArgument,
          "the layer is said to have ",
          problem.has_biases ? "biases" : "no biases",
          ", and the weights bring ",
          brings_biases ? "some" : "none");
}

std::vector<std::int64_t> count_per_expert(const Problem& problem, const TokenView& tokens) {
  std::vector<std::int64_t> counts(extent(problem.experts));
  for (std::int64_t pair = 0; pair < tokens.num_tokens * problem.topk; ++pair) {
    const std::int64_t id = tokens.ids[pair];
    require(id < problem.experts,
            ErrorCode::kInvalidArgument,
            "token ",
            pair / problem.topk,
            ", slot ",
            pair % problem.topk,
            ": the expert id is ",
            id,
            "; this layer has experts 0 to ",
            problem.experts - 1);
    if (id >= 0) ++counts[extent(id)];
  }
  return counts;
}

std::vector<std::vector<std::int64_t>> pairs_by_expert(const Problem& problem,
                                                       const TokenView& tokens,
                                                       Portion portion) {
  std::vector<std::vector<std::int64_t>> pairs(extent(problem.experts));
  const std::int64_t first = portion.first_token * problem.topk;
  for (std::int64_t pair = first; pair < first + portion.num_tokens * problem.topk; ++pair)
    if (tokens.ids[pair] >= 0) pairs[extent(tokens.ids[pair])].push_back(pair);
  return pairs;
}

std::vector<Job> split(const std::vector<std::vector<std::int64_t>>& pairs) {
  constexpr std::size_t kMost = ExpertPass::kMostPairs;
  std::vector<Job> jobs;
  for (std::size_t expert = 0; expert < pairs.size(); ++expert)
    for (std::size_t first = 0; first < pairs[expert].size(); first += kMost) {
      const std::size_t count = std::min(kMost, pairs[expert].size() - first);
      jobs.push_back({static_cast<int>(expert), std::span(pairs[expert]).subspan(first, count)});
    }
  return jobs;
}

// fp32 from +0, k ascending, one rounding: the only sum of the layer whose order is part of its
// result.
void combine(const Problem& problem,
             const TokenView& tokens,
             Portion portion,
             const std::vector<Bfloat16>& slots,
             ReferenceOutput& output) {
  const std::int64_t hidden = problem.hidden;
  std::vector<float> sums(extent(hidden));
  for (std::int64_t local = 0; local < portion.num_tokens; ++local) {
    const std::int64_t token = portion.first_token + local;
    float* magnitudes = output.slot_magnitude.data() + token * hidden;
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (std::int64_t k = 0; k < problem.topk; ++k) {
      if (tokens.ids[token * problem.topk + k] < 0) continue;
      const Bfloat16* slot = slots.data() + (local * problem.topk + k) * hidden;
      for (std::int64_t column = 0; column < hidden; ++column) {
        sums[extent(column)] += to_float(slot[column]);
        magnitudes[column] += std::abs(to_float(slot[column]));
      }
    }
    std::transform(sums.begin(), sums.end(), output.y.data() + token * hidden, to_bfloat16);
  }
}

// What one thread keeps from job to job.
struct Seat {
  explicit Seat(const Problem& problem) : pass(problem) {}

  ExpertPass pass;
  ExpertScratch expert;
};

// The call's threads, each with a seat that is made before the first starts. What a job throws ends
// the others' work too, and reaches the caller.
class Pool {
 public:
  Pool(const Problem& problem, int num_threads)
      : seats_(static_cast<std::size_t>(std::max(num_threads, 1)), Seat(problem)) {}

  bool is_callers(const Seat& seat) const { return &seat == seats_.data(); }

  template <class Work>
  void for_each(const std::vector<Job>& jobs, const Work& work) {
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::exception_ptr thrown;
    const auto take_jobs = [&](Seat& seat) {
      try {
        for (std::size_t job = next++; job < jobs.size(); job = next++)
          work(seat, jobs[job]);
      } catch (...) {
        next = jobs.size();
        const std::lock_guard lock(mutex);
        thrown = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < std::min(seats_.size(), jobs.size()); ++i)
        threads.emplace_back([&, i] { take_jobs(seats_[i]); });
      take_jobs(seats_[0]);
    }
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  std::vector<Seat> seats_;
};

ReferenceOutput empty_output(const Problem& problem, const TokenView& tokens, bool keep_stages) {
  ReferenceOutput output;
  const std::int64_t cells = tokens.num_tokens * problem.hidden;
  const std::int64_t pairs = tokens.num_tokens * problem.topk;
  output.y.resize(extent(cells));
  output.slot_magnitude.resize(extent(cells));
  if (keep_stages) {
    output.stages.linear1.resize(extent(pairs * 2 * problem.intermediate));
    output.stages.codes.resize(extent(pairs * problem.intermediate));
    output.stages.scales.resize(extent(pairs * problem.intermediate / kGroupSize));
    output.stages.slots.resize(extent(pairs * problem.hidden));
  }
  return output;
}

// `run_job(seat, job, run)` fetches the job's expert and hands it to `run`.
template <class RunJob>
ReferenceOutput run_all(const Problem& problem,
                        const TokenView& tokens,
                        const ReferenceOptions& options,
                        const RunJob& run_job) {
  ReferenceOutput output = empty_output(problem, tokens, options.keep_stages);
  output.tokens_per_expert = count_per_expert(problem, tokens);
  ReferenceStages* const stages = options.keep_stages ? &output.stages : nullptr;

  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  Pool pool(problem, options.num_threads > 0 ? options.num_threads : cores);
  std::atomic<std::int64_t> pairs_done = 0;
  const std::int64_t slot_values = std::int64_t{problem.topk} * problem.hidden;
  const std::int64_t most_tokens = std::max<std::int64_t>(1, options.slot_bytes / 2 / slot_values);
  for (std::int64_t first = 0; first < tokens.num_tokens; first += most_tokens) {
    const Portion portion{first, std::min(most_tokens, tokens.num_tokens - first)};
    const std::int64_t first_pair = first * problem.topk;
    std::vector<Bfloat16> slots(extent(portion.num_tokens * slot_values));
    const auto pairs = pairs_by_expert(problem, tokens, portion);
    pool.for_each(split(pairs), [&](Seat& seat, const Job& job) {
      run_job(seat, job, [&](const WeightView& expert) {
        seat.pass.run(expert, tokens, job.pairs, first_pair, slots.data(), stages);
      });
      pairs_done += static_cast<std::int64_t>(job.pairs.size());
      if (options.progress && pool.is_callers(seat))
        options.progress(pairs_done, tokens.num_tokens * problem.topk);
    });
    combine(problem, tokens, portion, slots, output);
    if (stages != nullptr)
      std::copy(slots.begin(), slots.end(), stages->slots.data() + first_pair * problem.hidden);
  }
  return output;
}

}  // namespace

ReferenceOutput reference_forward(const Problem& problem,
                                  const WeightView& weights,
                                  const TokenView& tokens,
                                  const ReferenceOptions& options) {
  check_shape(problem, weights.linear1_bias != nullptr || weights.linear2_bias != nullptr);
  return run_all(problem, tokens, options, [&](Seat&, const Job& job, const auto& run) {
    run(weights.expert(job.expert, problem));
  });
}

ReferenceOutput reference_forward(const Problem& problem,
                                  const WeightSource& weights,
                                  const TokenView& tokens,
                                  const ReferenceOptions& options) {
  check_shape(problem, weights.facts().has_biases);
  return run_all(problem, tokens, options, [&](Seat& seat, const Job& job, const auto& run) {
    run(weights.expert(job.expert, seat.expert));
    weights.release(job.expert);
  });
}

}  // namespace megamoe
