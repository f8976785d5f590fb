#!/usr/bin/env python3
"""Ranks that somebody else starts: this process is one of them, by the environment of torchrun, mpirun or srun. They
write one file, the same as one process writes; what they disagree about is refused by name with both values."""

import os
import subprocess
import unittest

from cli_case import CLI, SECONDS, CliCase
from synthetic_layer import Layer, Tokens

GOOD, BAD_INPUT, RUN_FAILED = 0, 2, 4

LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "MASTER_PORT"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"),
    "mpich": ("PMI_RANK", "PMI_SIZE", "PMI_JOBID"),
    "srun": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID"),
}
ALL_VARIABLES = {variable for three in LAUNCHERS.values() for variable in three}


def environment_of(launcher, rank, ranks, job):
    plain = {name: value for name, value in os.environ.items() if name not in ALL_VARIABLES}
    return {**plain, **dict(zip(LAUNCHERS[launcher], (str(rank), str(ranks), job)))}


class Launched(CliCase):
    def setUp(self):
        super().setUp()
        self.layer = Layer(64, 32, 8)
        self.write("w", self.layer.tensors())
        self.write("x", Tokens(self.layer, 13, 2).tensors())
        self.first = self.forward()

    def start(self, launcher, rank, ranks, *flags):
        words = [CLI, "forward", "--weights", "w", "--input", "x", "--output", "launched", "--launch", "environment"]
        process = subprocess.Popen(
            [*words, *flags],
            cwd=self.folder,
            env=environment_of(launcher, rank, ranks, f"{os.getpid()}-{self.id()[-40:]}"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.kill)
        return process

    def run_ranks(self, launcher, flags_of_ranks):
        ranks = [self.start(launcher, rank, len(flags_of_ranks), *flags) for rank, flags in enumerate(flags_of_ranks)]
        return [(*rank.communicate(timeout=SECONDS), rank.returncode) for rank in ranks]

    def test_every_launcher_gives_the_bytes_of_one_process(self):
        for launcher in LAUNCHERS:
            for ranks in (1, 2, 4):
                with self.subTest(launcher=launcher, ranks=ranks):
                    ends = self.run_ranks(launcher, [()] * ranks)
                    self.assertEqual([code for _, _, code in ends], [GOOD] * ranks, ends)
                    self.assertIn("as process", ends[0][0].replace("as a process", "as processes"))
                    self.assertEqual([out for out, _, _ in ends[1:]], [""] * (ranks - 1), "rank 0 alone tells")
                    self.assertEqual(self.content("launched"), self.first)
                    os.remove(self.path("launched"))

    def test_what_ranks_disagree_about_has_both_values(self):
        for _, words, code in self.run_ranks("torchrun", [("--capacity", "64"), ("--capacity", "128")]):
            self.assertEqual(code, BAD_INPUT, words)
            self.assertIn("ranks 0 and 1 disagree on capacity of the layer: 64 on rank 0, 128 on rank 1", words)
        self.assertNotIn("launched", self.remaining())

    def test_a_rank_that_does_not_come_is_named(self):
        alone = self.start("torchrun", 0, 2, "--timeout-ms", "300")
        _, words = alone.communicate(timeout=SECONDS)
        self.assertEqual(alone.returncode, RUN_FAILED, words)
        self.assertIn("waiting for rank 1", words)
        self.assertNotIn("launched", self.remaining())

    def test_no_launcher(self):
        plain = {name: value for name, value in os.environ.items() if name not in ALL_VARIABLES}
        self.refuse(
            BAD_INPUT,
            "the environment names no rank",
            *("forward", "--weights", "w", "--input", "x", "--output", "launched", "--launch", "environment"),
            env=plain,
        )

    def test_another_number_of_ranks(self):
        alone = self.start("torchrun", 0, 1, "--ranks", "2")
        _, words = alone.communicate(timeout=SECONDS)
        self.assertEqual(alone.returncode, BAD_INPUT, words)
        self.assertIn("--ranks is 2; the launcher started 1", words)


if __name__ == "__main__":
    unittest.main()
