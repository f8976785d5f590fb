#include "runtime/group/environment.hpp"

#include <gtest/gtest.h>

#include <map>

#include "megamoe/error.hpp"

namespace megamoe {
namespace {

using Variables = std::map<std::string, std::string>;

LaunchedPlace place(const Variables& variables) {
  return place_from_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const Variables& variables) {
  try {
    place(variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

TEST(Environment, TorchrunsVariables) {
  const LaunchedPlace p = place({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(p.rank, 3);
  EXPECT_EQ(p.ranks, 8);
  EXPECT_EQ(p.name, "MASTER_PORT-29500");
}

TEST(Environment, OwnNameComesFirst) {
  EXPECT_EQ(place({{"RANK", "0"},
                   {"WORLD_SIZE", "2"},
                   {"MASTER_PORT", "29500"},
                   {"MEGAMOE_RENDEZVOUS", "mine"}})
                .name,
            "mine");
}

TEST(Environment, OtherLaunchers) {
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_RANK", "1"},
                   {"OMPI_COMM_WORLD_SIZE", "2"},
                   {"PMIX_NAMESPACE", "job7"}})
                .name,
            "PMIX_NAMESPACE-job7");
  EXPECT_EQ(place({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MEGAMOE_RENDEZVOUS", "x"}}).rank, 1);
  EXPECT_EQ(place({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SLURM_JOB_ID", "99"}}).ranks, 6);
}

// E2: refused before anybody waits for a rank that can't come.
TEST(Environment, RanksOnSeveralHostsAreRefused) {
  EXPECT_EQ(
      refusal(
          {{"RANK", "0"}, {"WORLD_SIZE", "16"}, {"LOCAL_WORLD_SIZE", "8"}, {"MASTER_PORT", "1"}}),
      "the ranks must all be on one host: WORLD_SIZE is 16, but LOCAL_WORLD_SIZE is 8");
}

TEST(Environment, WhatIsMissingOrNoNumberIsNamed) {
  EXPECT_EQ(refusal({}),
            "the environment names no rank: RANK and WORLD_SIZE, or what mpirun or srun set, are "
            "missing");
  EXPECT_EQ(refusal({{"RANK", "1x"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
            "the environment's RANK is \"1x\", which is no number");
  EXPECT_EQ(refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
            "the environment has RANK but neither MEGAMOE_RENDEZVOUS nor MASTER_PORT, from which "
            "the rendezvous gets its name");
}

}  // namespace
}  // namespace megamoe
