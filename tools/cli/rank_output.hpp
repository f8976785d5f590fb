#pragma once

#include <memory>
#include <vector>

#include "cli/layer_run.hpp"
#include "files/output_file.hpp"
#include "numerics/bfloat16.hpp"

namespace megamoe::cli {

/// Where a rank puts its rows and its experts' counts.
struct RankPlaces {
  Bfloat16* rows = nullptr;
  std::int64_t* tokens_per_expert = nullptr;
};

/// The output of all ranks on its way into one file. Ranks that this process starts write into the
/// file's mapping; ranks that a launcher started have memory of their own, and rank 0 collects it.
class RankOutput {
 public:
  RankOutput(const LayerRun& run, const std::string& path);

  RankPlaces places_of(int rank);
  /// Collective, behind the call.
  void collect(Group& group);

  /// Whether this process has the whole, and tells of it.
  bool has_file() const { return file_ != nullptr; }
  OutputFile& file() const { return *file_; }

 private:
  void collect_rows(Group& group);

  const LayerRun& run_;
  std::unique_ptr<OutputFile> file_;  // null on the ranks that give theirs to rank 0
  std::vector<Bfloat16> rows_;
  std::vector<std::int64_t> tokens_per_expert_;
};

}  // namespace megamoe::cli
