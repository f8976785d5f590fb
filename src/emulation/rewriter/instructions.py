"""What becomes of each instruction that Hopper lacks: a call of the device library, or a few instructions of Hopper's.

A rule is a pattern for the whole name of the instruction and a function of (statement, match, names) that returns the
text. A family that is listed in KNOWN_FAMILIES and has no rule for a form is refused by name; what else Hopper lacks,
ptxas refuses."""

import re

from ptx import Refused, elements, inside


class Names:
    """Names that nothing else in the module has."""

    def __init__(self):
        self._count = 0

    def new(self, start):
        self._count += 1
        return f"{start}_emulated_{self._count}"


def call(names, function, arguments, result=None):
    """A call by the ABI of PTX: arguments and the result are (type, register)."""
    place = names.new("argument")
    text = "{ " + "".join(f".param .{kind} {place}_{i}; " for i, (kind, _) in enumerate(arguments))
    text += "".join(f"st.param.{kind} [{place}_{i}], {value}; " for i, (kind, value) in enumerate(arguments))
    listed = ", ".join(f"{place}_{i}" for i in range(len(arguments)))
    if result is None:
        return f"{text}call {function}, ({listed}); }}"
    kind, register = result
    return (f"{text}.param .{kind} {place}_r; call ({place}_r), {function}, ({listed}); "
            f"ld.param.{kind} {register}, [{place}_r]; }}")


def _multiply(s, _, names):
    if len(s.operands) != 7 or s.operands[1].startswith("["):
        raise Refused(f"{s.op} with {len(s.operands)} operands, or with A in tensor memory")
    to, a, b, instruction, a_scales, b_scales, accumulates = s.operands
    word = names.new("%accumulates")
    return (f"{{ .reg .b32 {word}; selp.b32 {word}, 1, 0, {accumulates}; " +
            call(names, "emulated_multiply",
                 [("b32", inside(to)), ("b64", a), ("b64", b), ("b32", instruction), ("b32", inside(a_scales)),
                  ("b32", inside(b_scales)), ("b32", word)]) + " }")


def _copy_scales(s, _, names):
    return call(names, "emulated_copy_scales", [("b32", inside(s.operands[0])), ("b64", s.operands[1])])


def _commit(s, match, names):
    mask = names.new("%mask")
    barrier = ("b32", inside(s.operands[0]))
    if match["multicast"]:
        make = f"cvt.u32.u16 {mask}, {s.operands[1]}; "
    else:
        rank = names.new("%rank")
        make = f".reg .b32 {rank}; mov.u32 {rank}, %cluster_ctarank; mov.b32 {mask}, 1; shl.b32 {mask}, {mask}, {rank}; "
    return f"{{ .reg .b32 {mask}; {make}" + call(names, "emulated_commit", [barrier, ("b32", mask)]) + " }"


def _load(s, match, names):
    """The library says where the thread's first register lies; the loads stand in the kernel."""
    registers = elements(s.operands[0])
    expected = int(match["repeats"]) * (4 if match["shape"] == "16x256b" else 1)
    if len(registers) != expected:
        raise Refused(f"{s.op} with {len(registers)} registers in place of {expected}")
    place = names.new("%place")
    text = f"{{ .reg .b64 {place}; " + call(
        names, f"emulated_load_{match['shape']}", [("b32", inside(s.operands[1])), ("b32", str(len(registers)))],
        ("b64", place))
    for i, register in enumerate(registers):
        # .16x256b: rows t / 4 and 8 below, pairs of columns, eight columns a repetition; a row is 512 words.
        word = i if match["shape"] == "32x32b" else i // 4 * 8 + i % 4 // 2 * 8 * 512 + i % 2
        text += f" ld.relaxed.gpu.global.b32 {register}, [{place}+{4 * word}];"
    return text + " }"


def _allocate(s, _, names):
    return call(names, "emulated_allocate", [("b32", inside(s.operands[0])), ("b32", s.operands[1])])


def _deallocate(s, _, names):
    return call(names, "emulated_deallocate", [("b32", s.operands[0]), ("b32", s.operands[1])])


def _copy_box(s, match, names):
    dimensions = int(match["dimensions"])
    tensor, coordinates = re.match(r"\[\s*(\S+?)\s*,\s*\{(.*)\}\s*\]", s.operands[1]).groups()
    at = [c.strip() for c in coordinates.split(",")]
    if dimensions not in (2, 3) or len(at) != dimensions:
        raise Refused(f"{s.op} with {len(at)} coordinates; copies in 2 or 3 dimensions are emulated")
    at += ["0"] * (3 - dimensions)
    return call(names, "emulated_copy_box",
                [("b32", "1" if match["pair"] else "0"), ("b32", str(dimensions)), ("b32", inside(s.operands[0])),
                 ("b64", tensor)] + [("b32", c) for c in at] + [("b32", inside(s.operands[2]))])


def _as_shared_address(operand, names):
    """Assembly in C++ may name shared memory by 64 bits."""
    register = names.new("%address")
    move = "cvt.u32.u64" if operand.startswith("%rd") else "mov.b32"
    return register, f".reg .b32 {register}; {move} {register}, {operand}; "


def _store_bytes_transposed(s, _, names):
    address, declared = _as_shared_address(inside(s.operands[0]), names)
    return f"{{ {declared}" + call(names, "emulated_store_bytes_transposed",
                                   [("b32", address), ("b32", elements(s.operands[1])[0])]) + " }"


def _clear(s, _, names):
    return call(names, "emulated_clear", [("b64", inside(s.operands[0])), ("b64", s.operands[1])])


def _pairs_of_floats(s, match, names):
    """Two scalar operations, bit for bit the same."""
    name = names.new("%pair")
    sources = s.operands[1:]
    halves = [[f"{name}_{i}_{half}" for half in range(2)] for i in range(len(sources) + 1)]
    text = "{ .reg .f32 " + ", ".join(register for pair in halves for register in pair) + "; "
    for pair, source in zip(halves[1:], sources):
        text += f"mov.b64 {{{pair[0]}, {pair[1]}}}, {source}; "
    for half in range(2):
        text += f"{match['scalar']}.f32 " + ", ".join(pair[half] for pair in halves) + "; "
    return text + f"mov.b64 {s.operands[0]}, {{{halves[0][0]}, {halves[0][1]}}}; }}"


def _add_bfloat16(s, _, names):
    to, narrow, wide = s.operands
    value = names.new("%wide")
    return f"{{ .reg .f32 {value}; cvt.f32.bf16 {value}, {narrow}; add.rn.f32 {to}, {value}, {wide}; }}"


def _bounded_wait(s, _, names):
    """The wait itself stays; where it says no, the library looks at its clock."""
    over = names.new("$over")
    address = re.match(r"^([%\w$]+)\s*(?:\+\s*(-?\d+))?$", inside(s.operands[1]))
    place = names.new("%awaited")
    ask = f"{s.predicate} {s.op} {', '.join(s.operands)};".strip()
    if s.predicate:
        raise Refused(f"{s.op} under the predicate {s.predicate}")
    return (f"{ask}\n@{s.operands[0]} bra {over};\n{{ .reg .b32 {place}; add.u32 {place}, {address.group(1)}, "
            f"{address.group(2) or 0}; " +
            call(names, "emulated_tick", [("b32", place), ("b32", s.operands[2])]) + f" }}\n{over}:")


def _nothing(_s, _m, _n):
    return ""


def _fence(_s, _m, _n):
    return "fence.acq_rel.gpu;"


_RULES = [(re.compile(pattern), rule) for pattern, rule in [
    (r"tcgen05\.mma\.cta_group::2\.kind::mxf8f6f4\.block_scale(\.block32|\.scale_vec::1X)?", _multiply),
    (r"tcgen05\.cp\.cta_group::2\.32x128b\.warpx4", _copy_scales),
    (r"tcgen05\.commit\.cta_group::2\.mbarrier::arrive::one(\.shared::cluster)?"
     r"(?P<multicast>\.multicast::cluster)?\.b64", _commit),
    (r"tcgen05\.ld\.sync\.aligned\.(?P<shape>16x256b|32x32b)\.x(?P<repeats>\d+)\.b32", _load),
    (r"tcgen05\.wait::ld\.sync\.aligned", _nothing),
    (r"tcgen05\.fence::(before|after)_thread_sync", _fence),
    (r"tcgen05\.alloc\.cta_group::2\.sync\.aligned(\.shared::cta)?\.b32", _allocate),
    (r"tcgen05\.dealloc\.cta_group::2\.sync\.aligned\.b32", _deallocate),
    (r"tcgen05\.relinquish_alloc_permit\.cta_group::2\.sync\.aligned", _nothing),
    (r"cp\.async\.bulk\.tensor\.(?P<dimensions>\d)d(?P<pair>\.cta_group::2)?\.shared::(cluster|cta)\.global(\.tile)?"
     r"\.mbarrier::complete_tx::bytes(\.L2::cache_hint)?", _copy_box),
    (r"stmatrix\.sync\.aligned\.m16n8\.x1\.trans\.shared(::cta)?\.b8", _store_bytes_transposed),
    (r"st\.bulk(\.weak)?(\.shared::cta)?", _clear),
    (r"(?P<scalar>(add|sub|mul|fma)\.rn(\.ftz)?)\.f32x2", _pairs_of_floats),
    (r"add(\.rn)?\.f32\.bf16", _add_bfloat16),
    (r"setmaxnreg\..*", _nothing),  # the library's functions have registers of their own
    (r"mbarrier\.(try|test)_wait\.parity\..*", _bounded_wait),
]]

# Loads by tensor map alone: stores are Hopper's.
KNOWN_FAMILIES = re.compile(
    r"tcgen05\.|clusterlaunchcontrol\.|cp\.async\.bulk\.tensor\..*(cta_group|gather4|im2col::w)|"
    r"cp\.async\.bulk\.tensor\.\dd\.shared|stmatrix\..*\.b8|st\.bulk|setmaxnreg\.|redux\.sync\..*\.f32|.*\.f32x2$")


def replacement(statement, names):
    """The text in place of a statement; None if it may stay."""
    for pattern, rule in _RULES:
        match = pattern.fullmatch(statement.op)
        if match:
            return rule(statement, match, names)
    if KNOWN_FAMILIES.match(statement.op):
        raise Refused(f"{statement.op} is not emulated")
    return None
