#pragma once

#include <array>
#include <string>
#include <string_view>

#include "machine/cpu/tile/pool_row.hpp"
#include "megamoe/error.hpp"
#include "plan/choose.hpp"
#include "runtime/gpu/sm100_limits.hpp"
#include "runtime/gpu/sm90_limits.hpp"

namespace megamoe::test {

// The CPU machine's pool rows, without linking the machine.
inline PoolFormat cpu_pool_format(const Problem& problem) {
  return {.linear1_row_bytes = static_cast<std::uint32_t>(cpu::row_bytes(problem.hidden)),
          .linear2_row_bytes = static_cast<std::uint32_t>(cpu::row_bytes(problem.intermediate))};
}

inline Limits cpu(int workers) {
  return cpu_limits(workers, &cpu_pool_format);
}

inline constexpr std::array kMachines = {
    MachineKind::kCpu, MachineKind::kSm90, MachineKind::kSm100};

// A computer of each kind: 4 workers, an H200, a B200.
inline Limits usual_limits(MachineKind machine) {
  switch (machine) {
    case MachineKind::kCpu: return cpu(4);
    case MachineKind::kSm90: return sm90_limits(132);
    case MachineKind::kSm100: break;
  }
  return sm100_limits(148);
}

inline Problem flash(int ranks, int capacity) {
  return {.ranks = ranks,
          .experts = 256,
          .topk = 6,
          .hidden = 4096,
          .intermediate = 2048,
          .capacity = capacity};
}

inline Problem pro(int ranks, int capacity) {
  return {.ranks = ranks,
          .experts = 384,
          .topk = 6,
          .hidden = 7168,
          .intermediate = 3072,
          .capacity = capacity};
}

// The sentence of the Error that `body` throws; empty if it throws none.
template <class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// One that nothing but the tile's height depends on: `tokens` rows are spread over two experts.
inline Problem two_experts(int tokens) {
  return {.experts = 2, .hidden = 1024, .intermediate = 512, .capacity = tokens};
}

inline std::string why_of(const Plan& plan, std::string_view field) {
  for (const FiredRule& rule : plan.rules)
    if (rule.field == field) return rule.why;
  return {};
}

}  // namespace megamoe::test
