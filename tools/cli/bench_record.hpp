#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "megamoe/call_report.hpp"
#include "megamoe/ceilings.hpp"
#include "megamoe/problem.hpp"

namespace megamoe::cli {

/// One T: what a rank's clock saw, and what had to be done.
struct BenchRecord {
  int tokens = 0;                    ///< of a rank
  std::vector<double> microseconds;  ///< sorted
  std::uint64_t rows = 0;  ///< (token, expert) pairs of all ranks, of the median call's kind
  std::uint64_t active_experts = 0;  ///< with rows
  std::uint64_t moved_bytes = 0;     ///< between ranks, in one call
  int block_m = 0;
  PhaseTimes phases;  ///< of the last call, on rank 0

  double median() const { return microseconds[microseconds.size() / 2]; }
};

/// How it is held against what a rank's computer can do at most.
struct BenchShares {
  std::uint64_t bytes;  ///< that must cross the memory buses of all ranks
  double flops;         ///< of all ranks
  double bytes_per_second, flops_per_second;
  double of_read, of_flops;   ///< of the ceilings of all ranks
  double floor_microseconds;  ///< no call can be faster by these ceilings
};
/// `ceilings`: of all ranks together.
BenchShares shares_of(const Problem& problem, const BenchRecord& record, const Ceilings& ceilings);

nlohmann::ordered_json record_json(const Problem& problem,
                                   const BenchRecord& record,
                                   const Ceilings& ceilings);

/// A line each, for a person.
void print_cpu_table(const Problem& problem,
                     const std::vector<BenchRecord>& records,
                     const Ceilings& ceilings);
void print_gpu_table(const Problem& problem,
                     const std::vector<BenchRecord>& records,
                     const Ceilings& ceilings);

}  // namespace megamoe::cli
