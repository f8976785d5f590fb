#!/usr/bin/env python3
"""Writes src/machine/sm90/generated/wgmma.inc: one function for each wgmma shape that a plan can ask for.

The register operand is the weights, the shared-memory operand the tokens, named by the low word of its
descriptor. `start` begins a new sum, `add` continues one. With --check, exits 1 if the file is not what this script would write.
"""
import pathlib
import sys

TOKENS = (8, 16, 32, 64, 96, 128, 160)
KINDS = {
    "Float8": ("k32.f32.e4m3.e4m3", "1, 1"),
    "Bfloat16": ("k16.f32.bf16.bf16", "1, 1, 0"),
}
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "src/machine/sm90/generated/wgmma.inc"


def wrapped(items, per_line, indent):
    """Joins items by commas, a few on each line."""
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return (",\n" + " " * indent).join(lines)


def function(kind, tokens, starts):
    shape, tail = KINDS[kind]
    count = tokens // 2
    name = "start" if starts else "add"
    constraint = "=f" if starts else "+f"
    placeholders = [f"%{i}" for i in range(count)]
    rows = [placeholders[i : i + 16] for i in range(0, count, 16)]
    text = [
        f'      "{{.reg .b64 tile; mov.b64 tile, {{%{count + 4}, %{count + 5}}};"',
        f'      "wgmma.mma_async.sync.aligned.m64n{tokens}{shape} "',
        '      "{"',
    ]
    for index, row in enumerate(rows):
        comma = "," if index + 1 < len(rows) else ""
        text.append('      "' + ",".join(row) + comma + '"')
    first = count
    registers = ",".join(f"%{first + i}" for i in range(4))
    text.append(f'      "}},{{{registers}}},tile,{0 if starts else 1},{tail};}}"')
    outputs = wrapped([f'"{constraint}"(sum[{i}])' for i in range(count)], 6, 8)
    return (
        f"  static MEGAMOE_DEVICE void {name}(float* sum, const std::uint32_t* weights, std::uint32_t tokens) {{\n"
        "    asm volatile(\n"
        + "\n".join(text)
        + f"\n      : {outputs}\n"
        + '      : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "r"(tokens), "n"(kTileDescriptorHigh));\n'
        "  }\n"
    )


def generated():
    parts = ["// Written by tools/gen_wgmma.py; do not edit.\n"]
    for kind in KINDS:
        for tokens in TOKENS:
            parts.append(f"template <>\nstruct Wgmma<Operands::k{kind}, {tokens}> {{\n")
            parts.append(function(kind, tokens, True))
            parts.append(function(kind, tokens, False))
            parts.append("};\n")
    return "".join(parts)


def main():
    text = generated()
    if "--check" in sys.argv[1:]:
        if not OUTPUT.exists() or OUTPUT.read_text() != text:
            sys.exit(f"{OUTPUT} is not what tools/gen_wgmma.py writes; run it")
        return
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(text)


if __name__ == "__main__":
    main()
