"""What the emulation can't see and the text can: loads of tensor memory that nobody waited for, missing fences."""

from ptx import elements


def _is_arrival(statement):
    return statement.is_any("mbarrier.arrive")


def _unwaited(program, number):
    """The first thing that goes wrong with the tcgen05.ld of that line; None if nothing does."""
    loaded = set(elements(program.statements[number].operands[0]))
    before_the_wait = program.reachable(
        number + 1, lambda n: program.statements[n] is not None and program.statements[n].is_any("tcgen05.wait::ld"))
    for n in sorted(before_the_wait):
        s = program.statements[n]
        if s is None:
            continue
        touched = sorted(loaded & s.registers())
        if touched:
            return (f"line {n + 1}: {s.op} touches {touched[0]} of the tcgen05.ld at line {number + 1} with no "
                    "tcgen05.wait::ld between them")
        if _is_arrival(s):
            return (f"line {n + 1}: {s.op} follows the tcgen05.ld at line {number + 1} with no tcgen05.wait::ld between "
                    "them: the columns may be overwritten while they are read")
        if s.is_any("ret", "exit"):
            return f"line {n + 1}: the function ends without a tcgen05.wait::ld for line {number + 1}"
    return None


def unwaited_loads(program):
    """From each tcgen05.ld on, its registers rest until tcgen05.wait::ld, and nobody is told that it is done."""
    loads = [n for n, s in enumerate(program.statements) if s is not None and s.is_any("tcgen05.ld.")]
    return [wrong for wrong in (_unwaited(program, load) for load in loads) if wrong]


def _may_follow(program, sets, clears):
    """Lines that can be reached after a statement that sets a state and before one that clears it."""
    found = set()
    for number, s in enumerate(program.statements):
        if s is not None and sets(s):
            found |= program.reachable(number + 1,
                                       lambda n: program.statements[n] is not None and clears(program.statements[n]))
    return found


def missing_fences_after(program):
    """What a barrier's wait has seen is ordered before tensor operations by fence::after_thread_sync alone."""
    awaited = _may_follow(program, lambda s: s.is_any("mbarrier.try_wait", "mbarrier.test_wait"),
                          lambda s: s.is_any("tcgen05.fence::after_thread_sync"))
    for n in sorted(awaited):
        s = program.statements[n]
        if s is not None and s.is_any("tcgen05.ld.", "tcgen05.mma.", "tcgen05.cp."):
            yield (f"line {n + 1}: {s.op} can follow an mbarrier wait with no tcgen05.fence::after_thread_sync between "
                   "them")


def missing_fences_before(program):
    """A load is ordered before an arrival by fence::before_thread_sync alone."""
    loaded = _may_follow(program, lambda s: s.is_any("tcgen05.ld."),
                         lambda s: s.is_any("tcgen05.fence::before_thread_sync"))
    for n in sorted(loaded):
        s = program.statements[n]
        if s is not None and _is_arrival(s):
            yield (f"line {n + 1}: {s.op} can follow a tcgen05.ld with no tcgen05.fence::before_thread_sync between "
                   "them")


def findings(program):
    return [*unwaited_loads(program), *missing_fences_after(program), *missing_fences_before(program)]
