#include "runtime/group/environment.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <system_error>

#include "base/check.hpp"

namespace megamoe {
namespace {

/// What one kind of launcher sets. Null: it has no such variable.
struct Launcher {
  const char* rank;
  const char* ranks;
  const char* ranks_here;  ///< those of this host
  const char* job;         ///< tells its groups apart
};

constexpr std::array kLaunchers = {
    Launcher{"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT"},
    Launcher{"OMPI_COMM_WORLD_RANK",
             "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_SIZE",
             "PMIX_NAMESPACE"},
    Launcher{"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_JOBID"},
    Launcher{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_ID"},
};

int number(const char* variable, const char* text) {
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, value);
  require(error == std::errc() && rest == end,
          ErrorCode::kInvalidArgument,
          "the environment's ",
          variable,
          " is \"",
          text,
          "\", which is no number");
  return value;
}

std::string name_of(const Launcher& launcher, const GetVariable& get) {
  if (const char* name = get("MEGAMOE_RENDEZVOUS"); name != nullptr) return name;
  const char* const job = get(launcher.job);
  require(job != nullptr,
          ErrorCode::kInvalidArgument,
          "the environment has ",
          launcher.rank,
          " but neither MEGAMOE_RENDEZVOUS nor ",
          launcher.job,
          ", from which the rendezvous gets its name");
  return sentence(launcher.job, "-", job);
}

}  // namespace

LaunchedPlace place_from_environment(const GetVariable& get) {
  for (const Launcher& launcher : kLaunchers) {
    const char* const rank = get(launcher.rank);
    const char* const ranks = get(launcher.ranks);
    if (rank == nullptr || ranks == nullptr) continue;
    LaunchedPlace place{
        number(launcher.rank, rank), number(launcher.ranks, ranks), name_of(launcher, get)};
    const char* const here = get(launcher.ranks_here);
    require(here == nullptr || number(launcher.ranks_here, here) == place.ranks,
            ErrorCode::kInvalidArgument,
            "the ranks must all be on one host: ",
            launcher.ranks,
            " is ",
            ranks,
            ", but ",
            launcher.ranks_here,
            " is ",
            here == nullptr ? "" : here);
    return place;
  }
  throw Error(ErrorCode::kInvalidArgument,
              "the environment names no rank: RANK and WORLD_SIZE, or what mpirun or srun set, are "
              "missing");
}

}  // namespace megamoe
