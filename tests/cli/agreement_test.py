#!/usr/bin/env python3
"""y and tokens_per_expert of `megamoe forward` equal this suite's own arithmetic, over the shapes, routings and
file variants that a layer may have."""

import random
import unittest

import safetensors
from cli_case import CliCase
from number_formats import NAN
from synthetic_layer import Activation, Layer, Tokens


class Agreement(CliCase):
    def put(self, layer, tokens, **variants):
        self.write("w", layer.tensors())
        self.write("x", tokens.tensors(**variants))

    def test_shapes_ranks_and_topk(self):
        # H, I, E, K, T, ranks: any multiple of 32, no powers of two, more k than experts.
        cases = [
            (32, 32, 1, 1, 5, 1),
            (96, 32, 3, 2, 7, 3),
            (32, 160, 5, 1, 9, 5),
            (160, 96, 6, 3, 8, 2),
            (96, 96, 12, 10, 4, 4),
            (64, 32, 7, 4, 11, 7),
            (32, 64, 24, 6, 17, 8),
            (32, 32, 3, 10, 6, 1),
            (224, 32, 10, 8, 5, 5),
        ]
        for number, (hidden, intermediate, experts, topk, count, ranks) in enumerate(cases):
            with self.subTest(case=cases[number]):
                layer = Layer(hidden, intermediate, experts, seed=number)
                tokens = Tokens(layer, count, topk, seed=100 + number)
                self.put(layer, tokens)
                self.assert_agrees(layer, tokens, "--ranks", ranks)

    def test_skewed_and_masked_routing(self):
        layer = Layer(64, 32, 6)
        draw = random.Random(5)
        ids = [[draw.choice((-1, -1, 0, 0, 0, 3, 5, -7)) for _ in range(4)] for _ in range(20)]
        ids[3] = [-1] * 4
        tokens = Tokens(layer, 20, 4, ids=ids)
        tokens.weights[0][ids[0].index(-1) if -1 in ids[0] else 0] = 0.5
        for row, weights in zip(ids, tokens.weights):
            for k, expert in enumerate(row):
                if expert < 0:
                    weights[k] = NAN  # masked: must not matter
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens, "--ranks", 3)
        y = safetensors.read(self.path("y"))["y"].data
        self.assertEqual(y[3 * 128 : 4 * 128], bytes(128), "a token with no valid slot is +0")

    def test_all_tokens_on_one_expert_and_duplicate_ids(self):
        layer = Layer(32, 96, 8)
        tokens = Tokens(layer, 40, 3, ids=[[6, 6, 6]] * 40)
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens, "--ranks", 4, "--pool-rows", 1)

    def test_ranks_without_tokens(self):
        layer = Layer(32, 32, 8)
        tokens = Tokens(layer, 9, 2)
        self.put(layer, tokens, tokens_per_rank=[0, 7, 0, 2])
        self.assert_agrees(layer, tokens)
        self.assert_agrees(layer, tokens, "--launch", "processes")

    def test_no_tokens_at_all(self):
        layer = Layer(32, 32, 4)
        tokens = Tokens(layer, 0, 2)
        self.put(layer, tokens, tokens_per_rank=[0, 0])
        self.assert_agrees(layer, tokens, "--verify")

    def test_codes_as_input_and_narrow_ids(self):
        layer = Layer(96, 64, 5)
        tokens = Tokens(layer, 10, 3)
        tokens.use_codes()
        self.put(layer, tokens, narrow_ids=True)
        self.assert_agrees(layer, tokens, "--ranks", 5)

    def test_square_scales(self):
        layer = Layer(96, 64, 4, square_scales=True)
        tokens = Tokens(layer, 9, 2)
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens, "--ranks", 2)

    def test_biases(self):
        layer = Layer(64, 96, 4, biases=True)
        tokens = Tokens(layer, 9, 2)
        for bias_type in ("F32", "BF16"):
            with self.subTest(bias_type=bias_type):
                self.write("w", layer.tensors(bias_type))
                self.write("x", tokens.tensors())
                self.assert_agrees(layer, tokens, "--ranks", 2)

    def test_activations(self):
        layer = Layer(64, 64, 4, biases=True)
        tokens = Tokens(layer, 12, 2)
        self.put(layer, tokens)
        oai = ("--activation", "swiglu-oai")
        cases = [
            (Activation(clamp=0.25), ("--clamp", "0.25")),
            (Activation(clamp=0.0), ("--clamp", "0")),
            (Activation(), ("--clamp", "inf", "--fast-math", "off")),
            (Activation(oai=True), oai),
            (Activation(oai=True, alpha=0.5, limit=0.75), (*oai, "--alpha", "0.5", "--limit", "0.75")),
        ]
        results = set()
        for activation, flags in cases:
            with self.subTest(flags=flags):
                self.assert_agrees(layer, tokens, *flags, "--ranks", 2, activation=activation)
                results.add(self.content("y"))
        self.assertEqual(len(results), len(cases), "each activation gives a result of its own")

    def test_verify_and_check_agree_too(self):
        layer = Layer(96, 96, 6)
        tokens = Tokens(layer, 20, 3)
        self.put(layer, tokens)
        table = self.succeed("forward", "--weights", "w", "--input", "x", "--output", "y", "--verify", "--ranks", "3")
        self.assertIn("all 20 tokens: agrees", table)
        self.assertIn("agrees", self.succeed("check", "--weights", "w", "--input", "x", "--output", "y"))


if __name__ == "__main__":
    unittest.main()
