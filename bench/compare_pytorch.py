#!/usr/bin/env python3
"""Times megamoe's CPU machine beside PyTorch on the same weights, tokens and threads.

PyTorch runs what a user would write: for every expert that has tokens, bf16 matrix products on dequantised weights. The
two take turns, round by round, so that a computer whose speed drifts is fair to both; medians and their ratio are printed.
Asserts nothing.

    pip install torch numpy
    megamoe generate --shape flash --experts 32 --tokens 2048 --seed 1 --weights w.safetensors --input x.safetensors
    bench/compare_pytorch.py --megamoe build/release/tools/cli/megamoe --weights w.safetensors --input x.safetensors
"""

import argparse
import json
import mmap
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import torch

FP4_VALUES = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=numpy.float32)
NUMPY_TYPES = {"U8": numpy.uint8, "F8_E8M0": numpy.uint8, "I64": numpy.int64, "I32": numpy.int32, "F32": numpy.float32,
               "BF16": numpy.uint16}


def read_tensors(path):
    """Every tensor of a safetensors file by name, as numpy arrays over the mapped file."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, facts in header.items():
        begin, end = facts["data_offsets"]
        values = numpy.frombuffer(data, dtype=numpy.uint8, count=end - begin, offset=8 + length + begin)
        tensors[name] = values.view(NUMPY_TYPES[facts["dtype"]]).reshape(facts["shape"])
    return tensors


def bfloat16(bits):
    return torch.from_numpy(bits.view(numpy.int16).copy()).view(torch.bfloat16)


def dequantise(codes, scales):
    """One expert's matrix [rows, k / 2] of FP4 pairs and [rows, k / 32] exponents, as bf16 [rows, k]; exact."""
    values = numpy.empty((codes.shape[0], codes.shape[1] * 2), dtype=numpy.float32)
    values[:, 0::2] = FP4_VALUES[codes & 15]
    values[:, 1::2] = FP4_VALUES[codes >> 4]
    factors = numpy.ldexp(numpy.float32(1), scales.astype(numpy.int32) - 127)
    return torch.from_numpy(values * numpy.repeat(factors, 32, axis=1)).to(torch.bfloat16)


class DenseLayer:
    """The layer as a PyTorch user writes it."""

    def __init__(self, weights):
        experts = weights["l1.weight"].shape[0]
        self.linear1 = [dequantise(weights["l1.weight"][e], weights["l1.scale"][e]) for e in range(experts)]
        self.linear2 = [dequantise(weights["l2.weight"][e], weights["l2.scale"][e]) for e in range(experts)]

    def forward(self, x, ids, routing):
        y = torch.zeros(x.shape, dtype=torch.float32)
        for expert in torch.unique(ids).tolist():
            if expert < 0:
                continue
            token, slot = torch.where(ids == expert)
            gate, up = (x[token] @ self.linear1[expert].T).chunk(2, dim=1)
            hidden = torch.nn.functional.silu(gate) * up * routing[token, slot, None].to(torch.bfloat16)
            y.index_add_(0, token, (hidden @ self.linear2[expert].T).float())
        return y.to(torch.bfloat16)


def time_pytorch(layer, inputs, count, calls):
    """Microseconds of `calls` calls, each with other tokens."""
    x, ids, routing = inputs
    times = []
    for call in range(calls + 1):
        window = (torch.arange(count) + call * count) % x.shape[0]
        arguments = x[window], ids[window], routing[window]
        start = time.perf_counter()
        with torch.no_grad():
            layer.forward(*arguments)
        times.append((time.perf_counter() - start) * 1e6)
    return times[1:]


def time_megamoe(arguments, tokens, calls):
    """The records of `megamoe bench`, by number of tokens, and the ceilings that it measured."""
    command = [arguments.megamoe, "bench", "--machine", "cpu", "--json", "--weights", arguments.weights, "--input",
               arguments.input, "--ranks", "1", "--workers", str(arguments.threads), "--calls", str(calls), "--tokens",
               ",".join(map(str, tokens))]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {record["tokens"]: record for record in result["records"]}, result


def print_agreement(arguments, layer, inputs):
    """How far the two results are apart: PyTorch rounds to bf16 where the layer quantises to FP8."""
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "y.safetensors")
        subprocess.run([arguments.megamoe, "forward", "--machine", "cpu", "--ranks", "1", "--weights", arguments.weights,
                        "--input", arguments.input, "--output", output], check=True, capture_output=True)
        ours = bfloat16(read_tensors(output)["y"]).float()
    count = min(64, ours.shape[0])
    with torch.no_grad():
        theirs = layer.forward(*(tensor[:count] for tensor in inputs)).float()
    error = torch.linalg.norm(ours[:count] - theirs) / torch.linalg.norm(theirs)
    print(f"same work: results differ by {error:.1%} (relative L2), FP8 activations against bf16")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megamoe", required=True, help="the executable")
    parser.add_argument("--weights", required=True)
    parser.add_argument("--input", required=True, help="x in bf16")
    parser.add_argument("--tokens", default="1,8,32,128,512")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=10, help="of each in a round; fewer for many tokens")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    counts = [int(count) for count in arguments.tokens.split(",")]

    tokens = read_tensors(arguments.input)
    if tokens["x"].dtype != numpy.uint16:
        sys.exit(f"{arguments.input}: x must be BF16, since PyTorch takes it as it is")
    inputs = (bfloat16(tokens["x"]), torch.from_numpy(tokens["topk_ids"].astype(numpy.int64)),
              torch.from_numpy(tokens["topk_weights"].copy()))
    layer = DenseLayer(read_tensors(arguments.weights))
    print_agreement(arguments, layer, inputs)

    ours = {count: [] for count in counts}
    theirs = {count: [] for count in counts}
    for _ in range(arguments.rounds):
        records, result = time_megamoe(arguments, counts, arguments.calls)
        for count in counts:
            ours[count].append(records[count]["median_us"])
            calls = max(2, arguments.calls // max(1, count // 32))
            theirs[count].append(statistics.median(time_pytorch(layer, inputs, count, calls)))
    ceilings = result["ceilings"]
    print(f"{result['machine']}, {arguments.threads} threads, {arguments.rounds} rounds; PyTorch {torch.__version__}; this "
          f"computer reads {ceilings['read_gb_per_s']:.1f} GB/s and multiplies {ceilings['gflop_per_s']:.0f} GFLOP/s")
    print(f"{'T':>6} {'megamoe ms':>11} {'PyTorch ms':>11} {'ratio':>7} {'of read':>8} {'of multiply':>12}")
    for count in counts:
        mine, other = statistics.median(ours[count]), statistics.median(theirs[count])
        share = records[count]["median_us"] / mine  # the shares are of the last round's median
        print(f"{count:>6} {mine / 1e3:>11.2f} {other / 1e3:>11.2f} {other / mine:>6.2f}x"
              f" {records[count]['share_of_read_ceiling'] * share:>8.0%}"
              f" {records[count]['share_of_flop_ceiling'] * share:>12.0%}")


if __name__ == "__main__":
    main()
