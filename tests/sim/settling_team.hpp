#pragma once

#include <cstdint>
#include <utility>

#include "protocol/settle.hpp"
#include "sim/expectation.hpp"
#include "sim/team.hpp"

namespace megamoe::sim {

/// A simulated machine that settles rows: each cell that linear 1 left in a row becomes
/// settled_cell() of it, where it lies.
template <int kWidth, int kPulls>
class SettlingTeam : public Team<kWidth, kPulls> {
 public:
  using Team<kWidth, kPulls>::Team;

  void begin_settle(std::int64_t pool_row) {
    this->meet("begin_settle", static_cast<std::uint64_t>(pool_row), [&](const Values& values) {
      for (const std::uint64_t row : values)
        if (row != values[0]) this->fail("lanes of a team settle different rows");
      auto& settling = this->shared().settling;
      if (!this->shared().flights.empty()) this->fail("a row is settled while pulls are under way");
      if (settling.size() == kPulls)
        this->fail("more rows being settled than the machine has places for");
      if (oracle() != nullptr) oracle()->settle_begun(this->rank(), pool_row);
      settling.push_back({pool_row, false, {}});
      if (this->world().scheduler.random().one_in(2)) read(settling.back());
      return 0;
    });
  }
  /// The last lane to come has the cells; they land like any other write of its.
  void finish_settle() {
    this->meet("finish_settle", 0, [this](const Values&) {
      auto& settling = this->shared().settling;
      if (settling.empty()) this->fail("no row is being settled");
      TeamState::Settling& row = settling.front();
      read(row);
      if (oracle() != nullptr) oracle()->settle_landed(this->rank(), row.pool_row);
      this->write_bytes(
          cells(row.pool_row), row.cells.data(), row.cells.size() * sizeof row.cells[0]);
      settling.pop_front();
      return 0;
    });
  }

 private:
  using typename Team<kWidth, kPulls>::Values;

  Oracle* oracle() { return this->world().oracle; }
  std::uint64_t* cells(std::int64_t pool_row) const {
    const Workspace& w = this->call().workspace;
    const std::uint64_t offset = static_cast<std::uint64_t>(pool_row) * w.format.linear2_row_bytes;
    return reinterpret_cast<std::uint64_t*>(this->call().local(w.linear2_rows.at(offset)));
  }
  void read(TeamState::Settling& row) const {
    if (std::exchange(row.is_read, true)) return;
    for (int n = 0; n < this->call().ring.linear1_blocks; ++n)
      row.cells.push_back(settled_cell(cells(row.pool_row)[n]));
  }
};

static_assert(SettlingMachine<SettlingTeam<1, 1>> && SettlingMachine<SettlingTeam<32, 4>>);
static_assert(!SettlingMachine<Team<1, 1>>);

}  // namespace megamoe::sim
