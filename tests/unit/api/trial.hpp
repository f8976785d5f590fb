#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/synthetic.hpp"
#include "megamoe/megamoe.hpp"
#include "reference/compare.hpp"

namespace megamoe {

/// A small layer with weights and tokens made from a seed, to be run by ranks that are threads or
/// processes.
class Trial {
 public:
  explicit Trial(const Problem& problem, std::uint64_t seed = 1);

  /// The shape that most tests use: two experts a rank, top-3, 64 x 96, capacity 24.
  static Problem small(int ranks);

  const Problem& problem() const { return problem_; }
  Problem problem_of(int ranks) const;  ///< the same layer on another number of ranks

  /// All experts of a rank, into its layer.
  void set_experts(Layer& layer, int rank) const;
  /// Tokens `first` to `first + num_tokens` of the endless list of this trial's tokens.
  void set_tokens(Layer& layer, std::int64_t first, std::int64_t num_tokens) const;

  /// One call with such tokens; y as bytes, so that it can travel and be compared.
  std::string forward(Layer& layer, std::int64_t first, std::int64_t num_tokens) const;

  /// What tokens 0 to `num_tokens` come to, by the reference.
  ReferenceOutput reference(std::int64_t num_tokens) const;

 private:
  Problem problem_;
  SyntheticLayer synthetic_;
  std::vector<std::uint8_t> linear1_, linear1_scale_, linear2_, linear2_scale_;
  SyntheticRouting routing_;
};

/// y of a rank's whole life: its layer made, its weights set, one call of tokens `first` to
/// `first + num_tokens`.
std::string run_once(Group& group,
                     const Trial& trial,
                     const LayerOptions& options,
                     std::int64_t first,
                     std::int64_t num_tokens);

/// The results of a launch, by rank; each "error: ..." for a rank that is not good.
std::vector<std::string> texts_of(const LaunchResult& result);

/// The sentence that the work throws, preceded by its kind: "invalid argument: ..."; "nothing was
/// thrown" if so.
template <class Work>
std::string thrown_by(Work work);
std::string described(const Error& error);

template <class Work>
std::string thrown_by(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return described(error);
  }
  return "nothing was thrown";
}

/// Options for tests: one worker, poisoned memory, and a bound that ends what hangs.
LayerOptions test_options();

}  // namespace megamoe
