#!/usr/bin/env python3
"""Judges what racecheck reports of the Hopper kernels.

Racecheck knows barriers, mbarriers and the copy engine, but takes a word that one warp stores with release and another
loads with acquire for a race. Two accesses that are both strong (atomic at the scope of the CTA or wider) can't be
one, so each reported pair is looked up in the machine code: it is dismissed when both its instructions are strong, and
a finding otherwise.

usage: racecheck_verdict.py <racecheck's log, analysis report> <the executable>
Exit code 0: no findings; 9: some; 77: there is no cuobjdump or nvdisasm to look with.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

_WRITE = re.compile(r"Race reported between (\w+) access at (.+)\+0x([0-9a-f]+)")
_OTHER = re.compile(r"and (\w+) access at (.+)\+0x([0-9a-f]+) \[(\d+) hazards\]")
# The operands and block_m that name a kernel: as the log writes them, and in the mangled name.
_IN_LOG = re.compile(r"mega_moe<.*Operands\)(\d+), \(int\)(\d+)>")
_MANGLED = re.compile(r"mega_moe\w*OperandsE(\d+)ELi(\d+)E")
_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,6})\*/\s+(.*?);")
_STRONG = re.compile(r"\b(ATOMS?|REDS?)\b|\.STRONG\.")


def reported_pairs(log):
    """(kernel, one offset, the other, hazards) of each pair; a kernel that has no known name keeps its whole one."""
    first = None
    for line in log:
        found = _WRITE.search(line)
        if found:
            first = found
            continue
        found = _OTHER.search(line)
        if found and first:
            name = _IN_LOG.search(found.group(2))
            kernel = name.groups() if name and found.group(2) == first.group(2) else found.group(2)
            yield kernel, int(first.group(3), 16), int(found.group(3), 16), int(found.group(4))


def tool(name):
    beside = os.path.join("/usr/local/cuda/bin", name)
    return shutil.which(name) or (beside if os.access(beside, os.X_OK) else None)


def instructions(executable, kernels):
    """By kernel: the text of the instruction at each offset."""
    code = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([tool("cuobjdump"), "-xelf", "all", os.path.abspath(executable)], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        for cubin in glob.glob(os.path.join(folder, "*.cubin")):
            with open(cubin, "rb") as file:
                names = {found.groups() for found in _MANGLED.finditer(file.read().decode("latin-1"))}
            if not names & kernels:
                continue
            text = subprocess.run([tool("nvdisasm"), "-c", cubin], check=True, capture_output=True, text=True).stdout
            current = None
            for line in text.split("\n"):
                if line.startswith(".text."):
                    found = _MANGLED.search(line)
                    current = code.setdefault(found.groups(), {}) if found else None
                found = _INSTRUCTION.search(line)
                if found and current is not None:
                    current[int(found.group(1), 16)] = found.group(2).strip()
    return code


def judge(log, executable):
    pairs = list(reported_pairs(log))
    if not pairs:
        print("racecheck reports nothing")
        return 0
    if not tool("cuobjdump") or not tool("nvdisasm"):
        print(f"skipped: racecheck reports {len(pairs)} pairs of accesses, and there is no cuobjdump or nvdisasm here "
              "to tell whether they are strong")
        return 77
    code = instructions(executable, {kernel for kernel, *_ in pairs if isinstance(kernel, tuple)})
    dismissed, findings = [0, 0], 0
    for kernel, one, other, hazards in pairs:
        texts = [code.get(kernel, {}).get(offset, "unknown") for offset in (one, other)]
        if all(_STRONG.search(text) for text in texts):
            dismissed[0] += 1
            dismissed[1] += hazards
            continue
        findings += 1
        print(f"RACE in kernel {kernel}, {hazards} hazards: 0x{one:x} {texts[0]} | 0x{other:x} {texts[1]}")
    print(f"dismissed: {dismissed[0]} pairs ({dismissed[1]} hazards) of accesses that are strong on both sides")
    return 9 if findings else 0


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", errors="replace") as opened:
        sys.exit(judge(opened, sys.argv[2]))
