#!/usr/bin/env python3
"""Files that are cut short or lie about themselves are refused with a sentence: never a crash, never an output."""

import json
import os
import random
import struct
import unittest

import safetensors
from cli_case import CliCase
from synthetic_layer import Layer, Tokens


class Files(CliCase):
    def setUp(self):
        super().setUp()
        layer = Layer(64, 32, 4)
        tokens = Tokens(layer, 8, 2)
        self.tensors = {"w": layer.tensors(), "x": tokens.tensors(tokens_per_rank=[8])}
        for name, tensors in self.tensors.items():
            self.write(name, tensors)

    def refuse_content(self, name, content):
        """`content` in place of the file w or x."""
        with open(self.path("bad"), "wb") as file:
            file.write(content)
        files = {"w": "w", "x": "x", name: "bad"}
        self.refuse(2, "bad", "forward", "--weights", files["w"], "--input", files["x"], "--output", "y")
        self.assertEqual(self.remaining(), ["bad", "w", "x"])

    def refuse_header(self, name, changes):
        with self.subTest(file=name, changes=changes):
            self.refuse_content(name, safetensors.to_bytes(self.tensors[name], changes))

    def test_cut_short(self):
        for name in ("w", "x"):
            whole = self.content(name)
            (header,) = struct.unpack_from("<Q", whole)
            for size in (0, 1, 7, 8, 9, 8 + header // 2, 8 + header - 1, 8 + header, 8 + header + 1, len(whole) // 2, len(whole) - 1):
                with self.subTest(file=name, size=size):
                    self.refuse_content(name, whole[:size])

    def test_longer_than_it_says(self):
        self.refuse_content("w", self.content("w") + b"\0")

    def test_header_sizes_that_lie(self):
        whole = self.content("x")
        (header,) = struct.unpack_from("<Q", whole)
        for size in (0, 1, header - 1, header + 8, len(whole), 2**31, 2**32 + header, 2**63 - 1, 2**63, 2**64 - 1):
            with self.subTest(size=size):
                self.refuse_content("x", struct.pack("<Q", size) + whole[8:])

    def test_headers_that_are_no_header(self):
        for text in (b"", b"[]", b"{", b"null", b"{}", b'{"x":1}', b"\xff\xfe" * 8, b'{"x":{}}', b"[" * 4096, b'{"a":' * 2048):
            with self.subTest(text=text[:16]):
                self.refuse_content("x", struct.pack("<Q", len(text)) + text + bytes(64))

    def test_offsets_that_lie(self):
        for name, tensor in (("w", "l1.weight"), ("w", "l2.scale"), ("x", "x"), ("x", "topk_ids"), ("x", "topk_weights")):
            begin, end = self.offsets(name, tensor)
            for lie in (
                [end, begin],
                [begin, end + 1],
                [begin, end - 1],
                [begin + 8, end + 8],
                [begin, 2**62],
                [2**63, 2**63 + end - begin],
                [-8, end],
                [begin],
                [0.5, end],
                "all",
            ):
                self.refuse_header(name, {tensor: {"data_offsets": lie}})

    def offsets(self, name, tensor):
        whole = self.content(name)
        (size,) = struct.unpack_from("<Q", whole)
        return json.loads(whole[8 : 8 + size])[tensor]["data_offsets"]

    def test_shapes_that_lie(self):
        for lie in ([8, 2**60], [2**32, 2**32], [-8, -64], [8], [], [8, 64, 1], [8, 64.0], ["8", "64"], [0, 64], [9, 64], None):
            self.refuse_header("x", {"x": {"shape": lie}})
        for lie in ([4, 64, 2**61], [2**22, 2**22, 2**22], [0, 64, 32], [4, 0, 32], [1025, 64, 32], [2, 128, 32]):
            self.refuse_header("w", {"l1.weight": {"shape": lie}})

    def test_types_that_lie(self):
        for lie in ("F64", "F32", "I8", "BOOL", "F4", "", "bf16", 3, None):
            self.refuse_header("x", {"x": {"dtype": lie}})
        for lie in ("BF16", "I64", "NONE"):
            self.refuse_header("w", {"l2.weight": {"dtype": lie}})

    def test_bytes_at_random(self):
        """Damaged headers: refused, or harmless; never a crash."""
        seed = 20
        draw = random.Random(seed)
        for name in ("w", "x"):
            whole = self.content(name)
            (header,) = struct.unpack_from("<Q", whole)
            for number in range(30):
                damaged = bytearray(whole)
                for _ in range(draw.choice((1, 1, 2, 8))):
                    damaged[draw.randrange(8 + header)] = draw.randrange(256)
                with open(self.path("bad"), "wb") as file:
                    file.write(damaged)
                files = {"w": "w", "x": "x", name: "bad"}
                done = self.call("forward", "--weights", files["w"], "--input", files["x"], "--output", "y")
                self.assertIn(done.returncode, (0, 2), f"seed {seed}, number {number} of {name}: {done.stderr}")
                if done.returncode == 2:
                    self.assertNotIn("y", self.remaining())
                    self.assertRegex(done.stderr, r"\Amegamoe: [^\n]+\n\Z")
                else:
                    os.remove(self.path("y"))


if __name__ == "__main__":
    unittest.main()
