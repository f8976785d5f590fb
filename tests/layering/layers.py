"""Which layer may include what, and what it may not contain. The one table; the checks read it."""

import re

# Values without work in them; every layer may include them, and they include only each other.
VOCABULARY = {"megamoe/error.hpp", "megamoe/problem.hpp", "megamoe/plan.hpp", "megamoe/version.hpp",
              "megamoe/weights.hpp", "megamoe/layer_options.hpp", "megamoe/call_report.hpp",
              "megamoe/card.hpp"}

# The rest of include/megamoe, as a layer.
PUBLIC = "megamoe"

_ARITHMETIC = {"base", "numerics"}
_PROTOCOL = _ARITHMETIC | {"protocol"}

# A layer always may include itself. Folders from the source root, the longest that fits.
MAY_INCLUDE = {
    "megamoe": set(),
    "base": set(),
    "numerics": {"base"},
    "protocol": _ARITHMETIC,
    "plan": _PROTOCOL,
    "files": _ARITHMETIC,
    "reference": _ARITHMETIC | {"files"},
    "machine/cpu": _PROTOCOL,
    "machine/cuda": _PROTOCOL,
    "machine/sm90": _PROTOCOL | {"machine/cuda"},
    # emulation: its kernels exist in that form too.
    "machine/sm100": _PROTOCOL | {"machine/cuda", "emulation"},
    # Runs a Blackwell kernel on a Hopper card; knows instructions, not the protocol.
    "emulation": {"base", "machine/cuda"},
    "runtime": _PROTOCOL | {"plan", "machine/cpu", "machine/cuda", "machine/sm90", "machine/sm100", "emulation"},
    # machine/cpu: what this computer can do (instruction sets, ceilings) is the machine's to say.
    "api": _PROTOCOL | {"plan", "runtime", "machine/cpu", PUBLIC},
    "cli": _ARITHMETIC | {"plan", "files", "reference", "api", PUBLIC},
}

# Libraries of others, by the start of what stands between < and >, and who may use them.
LIBRARIES = {
    "hwy/": {"machine/cpu"},
    "CLI/": {"cli"},
    "nlohmann/": {"files", "plan", "cli"},
    "cuda": {"machine/cuda", "machine/sm90", "machine/sm100", "emulation", "runtime"},
    "nccl": {"runtime"},
    "gtest/": set(),
    "gmock/": set(),
    "benchmark/": set(),
}

_THREADS = r"thread|mutex|shared_mutex|condition_variable|future|semaphore|barrier|latch|stop_token"
_POSIX = r"unistd\.h|pthread\.h|fcntl\.h|sched\.h|signal\.h|csignal|poll\.h|sys/.*|linux/.*"
_INTRINSICS = r"\w*mmintrin\.h|x86intrin\.h|arm_neon\.h|arm_sve\.h"
_INPUT_OUTPUT = r"iostream|fstream|cstdio|stdio\.h|filesystem"
_ALLOCATION = r"vector|map|unordered_map|set|deque|list|memory|new|string"

# Standard and system headers that a layer may not include.
FORBIDDEN_HEADERS = {
    "megamoe": "|".join([_THREADS, _POSIX, _INTRINSICS, _INPUT_OUTPUT]),
    "base": "|".join([_POSIX, _INTRINSICS]),
    "numerics": "|".join([_THREADS, _POSIX, _INTRINSICS, _INPUT_OUTPUT, _ALLOCATION, "atomic"]),
    "protocol": "|".join([_THREADS, _POSIX, _INTRINSICS, _INPUT_OUTPUT, _ALLOCATION, "atomic"]),
    "plan": "|".join([_THREADS, _POSIX, _INTRINSICS, "atomic"]),
    "files": "|".join([_THREADS, _INTRINSICS]),
    "reference": "|".join([_POSIX, _INTRINSICS]),
}

# Words that a layer may not contain outside comments and strings, and the reason.
FORBIDDEN_WORDS = {
    "numerics": [(r"\bnew\b|\bmalloc\b", "numbers allocate nothing")],
    "protocol": [
        (r"\bvirtual\b", "the machine is a concept, not a base class"),
        (r"__CUDA_ARCH__|\b__device__\b|\b__shared__\b", "one text for every machine"),
        (r"\bstd::atomic", "ordering is a verb of the machine's"),
        (r"\bnew\b|\bmalloc\b", "memory comes from the plan"),
    ],
}

# The only files with instructions in assembly.
ASM = re.compile(
    r"^(src/machine/(cpu/processor\.hpp|cuda/ptx\.cuh|sm90/wgmma\.cuh|sm90/generated/.*|sm100/tcgen05\.cuh)"
    r"|src/emulation/device/.*\.cuh|tests/emulation/instructions\.cuh)$")

# No instruction at all: it keeps the optimizer from finding out what is only done to be measured.
EMPTY_ASM = re.compile(r'asm volatile\(""')


def layer_of(place):
    """The layer of a path from the source root, such as protocol/ring.hpp; None for anything else."""
    fitting = [layer for layer in MAY_INCLUDE if place.startswith(layer + "/")]
    return max(fitting, key=len, default=None)
