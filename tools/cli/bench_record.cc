#include "cli/bench_record.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>

#include "cli/table.hpp"

namespace megamoe::cli {
namespace {

/// Bytes of an expert as canonical MXFP4: codes and a scale for 32.
std::uint64_t expert_bytes(const Problem& p) {
  const auto values =
      3 * static_cast<std::uint64_t>(p.hidden) * static_cast<std::uint64_t>(p.intermediate);
  return values / 2 + values / 32;
}

/// Whatever the implementation: active experts' weights, token rows in, y out.
std::uint64_t needed_bytes(const Problem& p, const BenchRecord& r) {
  const auto tokens = static_cast<std::uint64_t>(r.tokens) * static_cast<std::uint64_t>(p.ranks);
  const auto hidden = static_cast<std::uint64_t>(p.hidden);
  return r.active_experts * expert_bytes(p) + tokens * (hidden + hidden / 32 + 2 * hidden);
}

void column(int width, const std::string& text) {
  std::cout << std::setw(width) << text;
}

}  // namespace

BenchShares shares_of(const Problem& p, const BenchRecord& r, const Ceilings& ceilings) {
  const double seconds = r.median() * 1e-6;
  BenchShares s{};
  s.bytes = needed_bytes(p, r);
  s.flops = 6.0 * p.hidden * p.intermediate * static_cast<double>(r.rows);
  s.bytes_per_second = static_cast<double>(s.bytes) / seconds;
  s.flops_per_second = s.flops / seconds;
  s.of_read = s.bytes_per_second / ceilings.read_bytes_per_second;
  s.of_flops = s.flops_per_second / ceilings.flops_per_second;
  s.floor_microseconds = std::max(s.of_read, s.of_flops) * r.median();
  return s;
}

nlohmann::ordered_json record_json(const Problem& problem,
                                   const BenchRecord& r,
                                   const Ceilings& ceilings) {
  const BenchShares s = shares_of(problem, r, ceilings);
  const PhaseTimes& t = r.phases;
  return {{"tokens", r.tokens},
          {"calls", r.microseconds.size()},
          {"median_us", r.median()},
          {"min_us", r.microseconds.front()},
          {"max_us", r.microseconds.back()},
          {"rows", r.rows},
          {"active_experts", r.active_experts},
          {"block_m", r.block_m},
          {"needed_bytes", s.bytes},
          {"gb_per_s", s.bytes_per_second * 1e-9},
          {"share_of_read_ceiling", s.of_read},
          {"tflop_per_s", s.flops_per_second * 1e-12},
          {"share_of_flop_ceiling", s.of_flops},
          {"floor_us", s.floor_microseconds},
          {"bytes_between_ranks", r.moved_bytes},
          {"last_call_us",
           {{"route", t.route * 1e3},
            {"compute", t.compute * 1e3},
            {"meet", t.meet * 1e3},
            {"combine", t.combine * 1e3},
            {"finish", t.finish * 1e3}}}};
}

void print_cpu_table(const Problem& problem,
                     const std::vector<BenchRecord>& records,
                     const Ceilings& ceilings) {
  std::cout
      << "ceilings here  " << fixed(ceilings.read_bytes_per_second * 1e-9, 1) << " GB/s read, "
      << fixed(ceilings.flops_per_second * 1e-9, 0) << " GFLOP/s\n"
      << "     T  calls   median us      min us      max us     GB/s  of it   GFLOP/s  of it\n";
  for (const BenchRecord& r : records) {
    const BenchShares s = shares_of(problem, r, ceilings);
    column(6, std::to_string(r.tokens));
    column(7, std::to_string(r.microseconds.size()));
    column(12, fixed(r.median(), 1));
    column(12, fixed(r.microseconds.front(), 1));
    column(12, fixed(r.microseconds.back(), 1));
    column(9, fixed(s.bytes_per_second * 1e-9, 1));
    column(7, fixed(100 * s.of_read, 0) + "%");
    column(9, fixed(s.flops_per_second * 1e-9, 0));
    column(7, fixed(100 * s.of_flops, 0) + "%");
    std::cout << "\n";
  }
}

void print_gpu_table(const Problem& problem,
                     const std::vector<BenchRecord>& records,
                     const Ceilings& ceilings) {
  std::cout << "ceilings of " << count_text(static_cast<std::uint64_t>(problem.ranks), "rank")
            << "  " << fixed(ceilings.read_bytes_per_second * 1e-9, 0) << " GB/s read, "
            << fixed(ceilings.flops_per_second * 1e-12, 0) << " TFLOP/s\n"
            << "     T  block_m  calls  median us    min us     floor  ratio    GB/s TFLOP/s   MB "
               "moved | route compute  meet combine finish us\n";
  for (const BenchRecord& r : records) {
    const BenchShares s = shares_of(problem, r, ceilings);
    column(6, std::to_string(r.tokens));
    column(9, std::to_string(r.block_m));
    column(7, std::to_string(r.microseconds.size()));
    column(11, fixed(r.median(), 1));
    column(10, fixed(r.microseconds.front(), 1));
    column(10, fixed(s.floor_microseconds, 1));
    column(7, fixed(r.median() / s.floor_microseconds, 2));
    column(8, fixed(s.bytes_per_second * 1e-9, 0));
    column(8, fixed(s.flops_per_second * 1e-12, 0));
    column(11, fixed(static_cast<double>(r.moved_bytes) * 1e-6, 1));
    std::cout << " |";
    column(6, fixed(r.phases.route * 1e3, 0));
    column(8, fixed(r.phases.compute * 1e3, 0));
    column(6, fixed(r.phases.meet * 1e3, 0));
    column(8, fixed(r.phases.combine * 1e3, 0));
    column(7, fixed(r.phases.finish * 1e3, 0));
    std::cout << "\n";
  }
}

}  // namespace megamoe::cli
