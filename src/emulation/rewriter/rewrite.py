#!/usr/bin/env python3
"""Makes a Blackwell kernel's PTX run on Hopper: what Hopper lacks becomes calls of the emulation's device library.

usage: rewrite.py <kernel for sm_100a .ptx> <device library for sm_90a .ptx> <output .ptx>

Refuses, with a sentence and exit code 1: an instruction that is not emulated; tensor operations by a thread that no
elect.sync chose, or that does other work in the same region; and what lints.py finds."""

import collections
import re
import sys

import elect
import lints
from instructions import Names, replacement
from ptx import Program, Refused, one_statement_a_line

_ENTRY = re.compile(r"(?ms)^(?:\.(?:visible|weak) )?\.entry.*?\n\{\n(?:\s*\.(?:reg|local|shared)[^\n]*\n|\s*\n)*")
_UNPARSED = re.compile(r"^\s*(@\S+\s+)?(tcgen05|cp\.async\.bulk\.tensor.*cta_group|setmaxnreg)")


def _replaced(program, counts):
    """The kernel's lines for Hopper."""
    names = Names()
    elections = elect.widened(program)
    for number, line in enumerate(program.lines):
        statement = program.statements[number]
        if statement is None:
            if _UNPARSED.match(line):
                raise Refused(f"line {number + 1}: not understood: {line.strip()}")
            yield ".target sm_90a" if line.startswith(".target") else line
            continue
        if number in elections:
            counts["elect.sync, made wide"] += 1
            everybody = statement.operands[0].split("|")[1].strip()
            yield f"{line}\nsetp.eq.u32 {everybody}, 0, 0;"
            continue
        try:
            text = replacement(statement, names)
        except Refused as refused:
            raise Refused(f"line {number + 1}: {refused}") from refused
        if text is None:
            yield line
            continue
        counts[statement.op] += 1
        if statement.predicate:
            over = names.new("$over")
            opposite = statement.predicate[1:]
            opposite = opposite[1:] if opposite.startswith("!") else "!" + opposite
            text = f"@{opposite} bra {over};\n{text}\n{over}:"
        yield statement.indent + statement.opens + text + statement.closes


def _with_library(kernel, library):
    """The library's functions in front of the kernel's, each entry calling it first."""
    begun, at = "", 0
    for entry in _ENTRY.finditer(kernel):
        begun += kernel[at:entry.end()] + "\t{ call emulated_begin, (); }\n"
        at = entry.end()
    kernel = begun + kernel[at:]
    library = re.sub(r"(?m)^\.(version|target|address_size).*$", "", library).replace("$str", "$emulated_str")
    library = re.sub(r"(?m)^\.visible (?!\.global)", "", library)
    head = re.search(r"(?m)^\.address_size.*$", kernel)
    return kernel[:head.end()] + "\n" + library + "\n" + kernel[head.end():]


def rewrite(kernel, library):
    """(PTX for Hopper, how often what was replaced). Raises Refused."""
    if not re.search(r"(?m)^\.target sm_10[03]", kernel):
        raise Refused("the kernel is not compiled for sm_100a")
    program = Program(kernel)
    found = lints.findings(program)
    if found:
        raise Refused("\n".join(found))
    counts = collections.Counter()
    lines = list(_replaced(program, counts))
    return _with_library("\n".join(lines) + "\n", library), counts


def main(kernel_path, library_path, output_path):
    with open(kernel_path, encoding="utf-8") as kernel, open(library_path, encoding="utf-8") as library:
        text = kernel.read()
        try:
            rewritten, counts = rewrite(text, library.read())
        except Refused as refused:
            # Lines are those of one statement a line; written where they can be looked up.
            with open(output_path + ".refused", "w", encoding="utf-8") as output:
                output.write("\n".join(one_statement_a_line(text)))
            return f"{kernel_path}: {refused}\n(lines of {output_path}.refused)"
    with open(output_path, "w", encoding="utf-8") as output:
        output.write("".join(f"// {count} of {name}\n" for name, count in sorted(counts.items())) + rewritten)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
