#!/usr/bin/env python3
"""The same tokens give the same bytes, however they are run: the whole output files are compared."""

import re
import unittest

import safetensors
from cli_case import CliCase
from synthetic_layer import Layer, Tokens


class Sameness(CliCase):
    def setUp(self):
        super().setUp()
        self.layer = Layer(96, 160, 24, biases=True)
        self.tokens = Tokens(self.layer, 60, 5)
        self.write("w", self.layer.tensors())
        self.write("x", self.tokens.tensors())
        self.first = self.forward()

    def assert_same(self, *flags):
        with self.subTest(flags=flags):
            self.assertEqual(self.forward(*flags, output="again"), self.first)

    def test_ranks(self):
        for ranks in (2, 3, 4, 6, 8):
            self.assert_same("--ranks", ranks)

    def test_processes(self):
        for ranks in (1, 2, 8):
            self.assert_same("--ranks", ranks, "--launch", "processes")

    def test_workers(self):
        for workers in (1, 2, 3, 5):
            self.assert_same("--workers", workers, "--ranks", 2)

    def test_capacity(self):
        for capacity in (60, 61, 1000):
            self.assert_same("--capacity", capacity)
        self.assert_same("--capacity", 300, "--ranks", 4)

    def test_pool_rows(self):
        for rows in (1, 384, 385, 2000):
            self.assert_same("--pool-rows", rows, "--ranks", 2)
        self.assert_same("--pool-rows", 1, "--workers", 1, "--launch", "processes", "--ranks", 4)

    def test_memory_budget(self):
        self.assert_same("--memory-budget", 40_000_000, "--ranks", 2)

    def test_repeated_runs(self):
        for _ in range(3):
            self.assert_same("--ranks", 3)

    def test_uneven_splits(self):
        for split in ([60], [0, 60], [1, 0, 58, 1], [10, 20, 30]):
            self.write("x", self.tokens.tensors(tokens_per_rank=split))
            self.assert_same()

    def test_a_token_alone_is_as_in_company(self):
        alone = Tokens(self.layer, 1, 5)
        alone.rows, alone.ids, alone.weights = ([of[37]] for of in (self.tokens.rows, self.tokens.ids, self.tokens.weights))
        self.write("x", alone.tensors())
        self.forward(output="alone")
        row = 2 * self.layer.hidden
        whole, one = self.rows_of("y"), self.rows_of("alone")
        self.assertEqual(one, whole[37 * row : 38 * row])

    def rows_of(self, name):
        return safetensors.read(self.path(name))["y"].data

    def test_narrow_ids_and_square_scales_are_only_spellings(self):
        self.write("x", self.tokens.tensors(narrow_ids=True))
        self.assert_same()
        square = Layer(96, 64, 4, square_scales=True)
        tokens = Tokens(square, 7, 2)
        self.write("x", tokens.tensors())
        self.write("w", square.tensors())
        short = self.forward()
        square.square_scales = False
        self.write("w", square.tensors())
        self.assertEqual(self.forward(), short)

    def test_every_instruction_set_agrees_with_the_reference(self):
        listed = self.call("forward", "--weights", "w", "--input", "x", "--output", "y", "--isa", "none-such").stderr
        names = re.search(r"can run (.*)\n", listed).group(1).split(", ")
        self.assertIn("scalar", names)
        for name in names:
            with self.subTest(isa=name):
                facts = self.succeed_json(
                    "forward", "--weights", "w", "--input", "x", "--output", "y", "--isa", name, "--verify"
                )
                self.assertEqual(facts["machine"], "cpu/" + name)
                self.assertTrue(facts["verify"]["agrees"])


if __name__ == "__main__":
    unittest.main()
