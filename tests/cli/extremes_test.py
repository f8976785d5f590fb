#!/usr/bin/env python3
"""NaN, infinity and the ends of the scales: each stays where the contract says, and nothing is hidden."""

import math
import struct
import unittest

import safetensors
from cli_case import CliCase
from number_formats import NAN
from synthetic_layer import Layer, Tokens


class Extremes(CliCase):
    def put(self, layer, tokens):
        self.write("w", layer.tensors())
        self.write("x", tokens.tensors())

    def row_bits(self, token, hidden):
        return struct.unpack_from(f"<{hidden}H", safetensors.read(self.path("y"))["y"].data, 2 * hidden * token)

    def test_nan_tokens_stay_alone(self):
        layer = Layer(64, 32, 4)
        tokens = Tokens(layer, 8, 2)
        self.put(layer, tokens)
        self.forward("--ranks", "2")
        clean = [self.row_bits(token, 64) for token in range(8)]
        tokens.rows[2][40] = NAN
        tokens.rows[5][0] = -math.inf
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens, "--ranks", "2")
        for token in range(8):
            wanted = (0x7FC0,) * 64 if token in (2, 5) else clean[token]
            self.assertEqual(self.row_bits(token, 64), wanted, f"token {token}")

    def test_a_nan_routing_weight_spoils_its_token_only(self):
        layer = Layer(32, 32, 4)
        tokens = Tokens(layer, 5, 2)
        tokens.weights[1][1] = NAN
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens)
        self.assertEqual(self.row_bits(1, 32), (0x7FC0,) * 32)

    def test_exponents_are_added_before_they_scale(self):
        # 2^127 * 2^-127 is 1: neither operand may be flushed or overflow on its own.
        layer = Layer(64, 32, 3)
        layer.scale1 = [[[0] * 2 for _ in rows] for rows in layer.scale1]
        tokens = Tokens(layer, 6, 2)
        tokens.use_codes(scale_bytes=(245, 246, 247))
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens, "--ranks", "3")

    def test_scale_byte_254(self):
        layer = Layer(64, 32, 3)
        layer.scale1 = [[[254] * 2 for _ in rows] for rows in layer.scale1]
        tokens = Tokens(layer, 6, 2)
        tokens.use_codes(scale_bytes=(0, 1, 2))
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens)

    def test_small_second_scales_meet_large_weights(self):
        layer = Layer(32, 32, 2)
        layer.scale2 = [[[7] for _ in rows] for rows in layer.scale2]
        tokens = Tokens(layer, 6, 1)
        tokens.weights = [[2.0**100] for _ in range(6)]
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens)

    def test_overflow_is_nan_or_infinity_as_in_the_arithmetic(self):
        layer = Layer(32, 32, 2)
        layer.scale1[1] = [[254] for _ in layer.scale1[1]]
        tokens = Tokens(layer, 8, 1, ids=[[token % 2] for token in range(8)])
        tokens.rows = [[value * 2.0**60 for value in row] for row in tokens.rows]
        tokens.rows = [row if token % 2 else [v * 2.0**-60 for v in row] for token, row in enumerate(tokens.rows)]
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens)

    def test_scale_byte_255_of_an_expert(self):
        layer = Layer(64, 32, 4)
        layer.scale1[2][5][1] = 255  # one gate row of one expert
        tokens = Tokens(layer, 8, 1, ids=[[token % 4] for token in range(8)])
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens, "--ranks", "2")
        layer = Layer(64, 32, 4)
        layer.scale2[2][9][0] = 255  # one output column
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens, "--ranks", "2")
        self.assertEqual([bits == 0x7FC0 for bits in self.row_bits(2, 64)].count(True), 1)

    def test_scale_byte_255_of_a_token(self):
        layer = Layer(64, 32, 4)
        tokens = Tokens(layer, 5, 2)
        tokens.use_codes()
        tokens.scales[3][1] = 255
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens)
        self.assertEqual(self.row_bits(3, 64), (0x7FC0,) * 64)

    def test_nan_passes_through_the_clamp(self):
        layer = Layer(32, 32, 2)
        tokens = Tokens(layer, 4, 1)
        tokens.rows[1][7] = NAN
        self.put(layer, tokens)
        self.forward("--clamp", "1")
        self.assertEqual(self.row_bits(1, 32), (0x7FC0,) * 32)

    def test_zero_tokens_rows(self):
        layer = Layer(32, 32, 2)
        tokens = Tokens(layer, 3, 1)
        tokens.rows[1] = [0.0] * 32
        self.put(layer, tokens)
        self.assert_agrees(layer, tokens)


if __name__ == "__main__":
    unittest.main()
