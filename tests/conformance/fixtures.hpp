#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "machine/cpu/team.hpp"
#include "machine/cpu/tile/pool_row.hpp"
#include "sim/bench.hpp"

// What the suite needs of a machine: a scenario's memory, a crew that runs a body on every lane,
// and the pool row that a token's bytes become. A device machine joins with a fixture of its own.

namespace megamoe::conformance {

/// The simulated machine.
template <int kLanes, int kPulls>
class SimFixture {
 public:
  using M = sim::Team<kLanes, kPulls>;
  static constexpr int kMostTeams = 2;

  static PoolFormat format(int hidden) { return sim::tagged_format(hidden, 1); }

  SimFixture(const sim::Scenario& scenario, std::uint64_t seed) : bench_(scenario), seed_(seed) {}

  const Call& call(int rank) { return bench_.call(rank); }
  std::uint64_t first_epoch(int rank) { return bench_.host(rank).first_epoch(); }

  template <class Body>
  void run(const sim::Crew& crew, Body body) {
    const auto result = bench_.run(crew, seed_, body);
    EXPECT_EQ(result.ending, sim::Scheduler::Ending::kDone) << result.failure;
  }

  static std::vector<std::byte> pool_row(const std::uint8_t* codes,
                                         const std::uint8_t* /*scales*/,
                                         int hidden) {
    const auto* bytes = reinterpret_cast<const std::byte*>(codes);
    return {bytes, bytes + hidden};
  }

 private:
  sim::Bench<M> bench_;
  std::uint64_t seed_;
};

/// The CPU machine, on threads.
class CpuFixture {
 public:
  using M = cpu::Team;
  static constexpr int kMostTeams = 1;

  static PoolFormat format(int hidden) {
    return {.linear1_row_bytes = static_cast<std::uint32_t>(cpu::row_bytes(hidden)),
            .linear1_scale_bytes = 0,
            .linear2_row_bytes = 64,
            .linear2_scale_bytes = 0};
  }

  CpuFixture(const sim::Scenario& scenario, std::uint64_t /*seed*/)
      : experts_(scenario.problem.experts), memory_(scenario.workspace(), scenario.problem.ranks) {
    for (int rank = 0; rank < scenario.problem.ranks; ++rank) {
      hosts_.push_back(std::make_unique<sim::RankHost>(scenario, memory_, rank));
      hosts_.back()->begin(0);
    }
  }

  const Call& call(int rank) { return hosts_[static_cast<std::size_t>(rank)]->call(); }
  std::uint64_t first_epoch(int rank) {
    return hosts_[static_cast<std::size_t>(rank)]->first_epoch();
  }

  template <class Body>
  void run(const sim::Crew& crew, Body body) {
    std::vector<std::unique_ptr<cpu::WorkerState>> states;
    std::vector<std::thread> threads;
    for (const int rank : crew.ranks) {
      for (int worker = 0; worker < crew.workers; ++worker) {
        states.push_back(std::make_unique<cpu::WorkerState>());
        states.back()->role_counts.resize(static_cast<std::size_t>(experts_));
        const auto live =
            [this, rank, worker, workers = crew.workers, &body, state = states.back().get()] {
              cpu::CallTimes times;
              const cpu::CallEnvironment environment{.first_epoch = first_epoch(rank),
                                                     .timeout_ms = 1000,
                                                     .kernel = &kernel(),
                                                     .times = &times};
              M m(call(rank), environment, {worker, workers}, *state);
              body(m, call(rank));
            };
        threads.emplace_back(live);
      }
    }
    for (std::thread& thread : threads)
      thread.join();
  }

  static std::vector<std::byte> pool_row(const std::uint8_t* codes,
                                         const std::uint8_t* scales,
                                         int hidden) {
    std::vector<std::byte> row(cpu::row_bytes(hidden), std::byte{sim::RankMemory::kPoison});
    kernel().store_row(codes, scales, hidden, row.data());
    return row;
  }

 private:
  static const cpu::TileKernel& kernel() {
    static const cpu::TileKernel it;
    return it;
  }

  int experts_;
  sim::RankMemory memory_;
  std::vector<std::unique_ptr<sim::RankHost>> hosts_;
};

}  // namespace megamoe::conformance
