"""Lets the whole warp of an elected thread through, where that thread only does what may be done 32 lanes wide.

An emulated multiplication takes one lane a hundred times longer than a warp. In the kernel one elected thread issues
it; `elect.sync` is made true in all lanes instead, if everything that its regions reach is register code, loads, waits
and the tensor operations that the library does by warps. A kernel keeps other work out of those regions; one that does
not is refused."""

import re

from ptx import Refused

TENSOR = ("tcgen05.mma.", "tcgen05.cp.", "tcgen05.commit.")

_MAY_BE_WIDE = re.compile(
    r"^(mov|add|sub|mul|mad|shl|shr|and|or|xor|not|neg|setp|selp|cvt|cvta|bra|bfe|bfi|prmt|lop3|min|max|rem|div|popc|"
    r"clz|shf|abs|sad|dp4a|mul24|mad24|set|slct|ld|nop|elect\.sync|bar\.warp\.sync|shfl\.sync|"
    r"mbarrier\.(try|test)_wait|tcgen05\.(mma|cp|commit|fence|wait))\b")


_NEAR = 8  # lines


class _Election:
    """One elect.sync: what holds its answer, and the regions that depend on it."""

    def __init__(self, program, number):
        self._program = program
        self.number = number
        predicate = program.statements[number].operands[0].split("|")[1].strip()
        self._function = [(n, s) for n, s in program.in_function_of(number)]
        self._elected = {predicate}
        self._others = set()
        self._words = set()
        self._follow_values()
        self.regions = [region for region in map(self._region, self._function) if region]

    def _follow_values(self):
        """Predicates that hold in the elected thread alone, and in all others. The first one may be a register of the
        assembly's own scope, whose name others use too: what reads it stands close by. nvcc's registers have one
        meaning in a function."""
        for n, s in self._function:
            is_near = 0 < n - self.number < _NEAR
            if s.is_any("mov.") and is_near and s.predicate[1:] in self._elected:
                self._words.add(s.operands[0])
            elif s.is_any("selp.") and is_near and s.operands[3] in self._elected and s.operands[1] != "0":
                self._words.add(s.operands[0])
            elif s.is_any("setp.eq.") and s.operands[1] in self._words and s.operands[2] == "0":
                self._others.add(s.operands[0])
            elif s.is_any("setp.ne.") and s.operands[1] in self._words and s.operands[2] == "0":
                self._elected.add(s.operands[0])

    def _region(self, numbered):
        """(start, end) of what only the elected thread does, for a branch on the answer."""
        n, s = numbered
        if not s.is_any("bra") or not s.predicate:
            return None
        name, is_negated = s.predicate[1:].lstrip("!"), s.predicate[1] == "!"
        if name not in self._elected and name not in self._others:
            return None
        if not name.startswith("%") and n - self.number >= _NEAR:
            return None
        if (name in self._others) != is_negated:
            return (n + 1, self._program.target(n))
        after = self._program.statements[n + 1]
        if after is None or not after.is_any("bra"):
            raise Refused(f"line {n + 1}: the elected thread jumps away from the others; not understood")
        return (self._program.target(n), self._program.target(n + 1))

    def lines(self):
        found = set()
        for start, end in self.regions:
            found |= self._program.reachable(start, lambda line, end=end: line == end)
        return found


def widened(program):
    """The lines of the elect.sync that become true everywhere. Refuses tensor operations outside their regions."""
    elections, covered = set(), set()
    for number, statement in enumerate(program.statements):
        if statement is None or not statement.is_any("elect.sync"):
            continue
        election = _Election(program, number)
        lines = election.lines()
        inside = [(n, program.statements[n]) for n in sorted(lines) if program.statements[n] is not None]
        if not any(s.is_any(*TENSOR) for _, s in inside):
            continue
        for n, s in inside:
            if not _MAY_BE_WIDE.match(s.op):
                raise Refused(f"line {n + 1}: {s.op} in a region of the thread elected at line {number + 1}, which "
                              "issues tensor operations; such a region holds only those, waits and register code")
        elections.add(number)
        covered |= lines
    for n, s in enumerate(program.statements):
        if s is not None and s.is_any(*TENSOR) and n not in covered:
            raise Refused(f"line {n + 1}: {s.op} is not in a region that elect.sync guards")
    return elections
