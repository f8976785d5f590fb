#!/usr/bin/env python3
"""Fails when docs/memory-model.md and src/protocol/counters.hpp do not list the same counters with the same scopes.

usage: counter_table.py <project root>
"""

import re
import sys

import source

_COUNTER = re.compile(r"^using (\w+) = Counter<Scope::k(\w+),", re.MULTILINE)
_ROW = re.compile(r"^\| `(\w+)` \| (\w+) \|", re.MULTILINE)


def check(root):
    counters = {name: scope.lower() for name, scope in _COUNTER.findall(source.read(root, "src/protocol/counters.hpp"))}
    rows = dict(_ROW.findall(source.read(root, "docs/memory-model.md")))
    findings = []
    for name in sorted(counters.keys() | rows.keys()):
        if counters.get(name) != rows.get(name):
            findings.append(f"{name}: scope {counters.get(name)} in counters.hpp, {rows.get(name)} in memory-model.md")
    return findings or ([] if counters else ["counters.hpp has no counters: does the pattern still fit?"])


if __name__ == "__main__":
    result = check(sys.argv[1])
    print("\n".join(result) or "the page and the file list the same counters")
    sys.exit(1 if result else 0)
