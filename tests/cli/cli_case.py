"""What the suites share: the executable, a folder of their own, and the comparison with the arithmetic."""

import json
import math
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import safetensors
from number_formats import bf16_value
from synthetic_layer import Computed

CLI = os.environ.get("MEGAMOE_CLI", "megamoe")
SECONDS = 240  # ends what hangs; asserts nothing


class CliCase(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="megamoe_cli_")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, tensors, header_changes=None):
        safetensors.write(self.path(name), tensors, header_changes)
        return self.path(name)

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def call(self, *arguments, **options):
        words = [CLI, *map(str, arguments)]
        return subprocess.run(
            words, capture_output=True, text=True, timeout=SECONDS, cwd=self.folder, check=False, **options
        )

    def succeed(self, *arguments, **options):
        done = self.call(*arguments, **options)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}{done.stdout}")
        self.assertEqual(done.stderr, "", arguments)
        return done.stdout

    def succeed_json(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json"))

    def refuse(self, code, words, *arguments, **options):
        """Exit code and one sentence on standard error with all of `words`; nothing on standard output."""
        done = self.call(*arguments, **options)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}{done.stdout}")
        self.assertEqual(done.stdout, "", arguments)
        self.assertRegex(done.stderr, r"\Amegamoe: [^\n]+\n\Z", arguments)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, done.stderr, arguments)

    def forward(self, *flags, weights="w", tokens="x", output="y"):
        self.succeed("forward", "--weights", weights, "--input", tokens, "--output", output, *flags)
        return self.content(output)

    def assert_agrees(self, layer, tokens, *flags, activation=None):
        """Runs files w and x and holds y and tokens_per_expert against the arithmetic."""
        self.forward(*flags)
        wanted = Computed(layer, tokens, *([activation] if activation else []))
        got = safetensors.read(self.path("y"))
        self.assertEqual((got["y"].dtype, got["y"].shape), ("BF16", [tokens.count, layer.hidden]))
        self.assertEqual(got["tokens_per_expert"].dtype, "I64")
        counts = list(struct.unpack(f"<{layer.experts}q", got["tokens_per_expert"].data))
        self.assertEqual(counts, wanted.tokens_per_expert)
        bits = struct.unpack(f"<{tokens.count * layer.hidden}H", got["y"].data)
        self.compare(bits, wanted)

    def compare(self, bits, wanted):
        flat = [value for row in wanted.y for value in row]
        finite = [value for value in flat if math.isfinite(value)]
        rms = math.sqrt(sum(value * value for value in finite) / max(1, len(finite)))
        magnitudes = [value for row in wanted.magnitude for value in row]
        squared, norm = 0.0, 0.0
        width = len(wanted.y[0]) if wanted.y else 1
        for place, (have, want, magnitude) in enumerate(zip(bits, flat, magnitudes)):
            where = f"token {place // width}, column {place % width}"
            if not math.isfinite(want):
                self.assertEqual(have, 0x7FC0, where)
                continue
            difference = abs(bf16_value(have) - want)
            self.assertLessEqual(difference, 2.0**-7 * magnitude + 0.03 * rms, where)
            squared += difference**2
            norm += want**2
        self.assertLessEqual(math.sqrt(squared), 0.002 * math.sqrt(norm) + 1e-300, "relative L2")

    def remaining(self):
        return sorted(os.listdir(self.folder))
