#!/usr/bin/env python3
"""Fails on an include that goes up or sideways, and on what a layer may not contain.

usage: include_direction.py <project root>
"""

import re
import sys

import layers
import source

_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def _line(text, position):
    return text.count("\n", 0, position) + 1


def _quoted(layer, place, target):
    """What is wrong with an include of ours, or None."""
    if target in layers.VOCABULARY:
        return None
    if place in layers.VOCABULARY:
        return "the vocabulary includes nothing but itself"
    if target.startswith(".") or "/../" in target:
        return "includes are written from the source root"
    other = layers.layer_of(target)
    if other is None:
        return "no layer has that header; includes are written from the source root"
    if other != layer and other not in layers.MAY_INCLUDE[layer]:
        allowed = ", ".join(sorted(layers.MAY_INCLUDE[layer])) or "nothing"
        return f"{layer} may not include {other}; it may include {allowed}"
    return None


def _angled(layer, header):
    """What is wrong with an include of somebody else's, or None."""
    for start, users in layers.LIBRARIES.items():
        if header.startswith(start) and layer not in users:
            return f"{layer} may not use this library; {', '.join(sorted(users)) or 'only tests'} may"
    forbidden = layers.FORBIDDEN_HEADERS.get(layer)
    if forbidden and re.fullmatch(forbidden, header):
        return f"{layer} may not include it"
    return None


def _assembly(path, text, code):
    lines = text.split("\n")
    for found in re.finditer(r"\b(asm|__asm__)\b", code):
        line = _line(code, found.start())
        if not layers.EMPTY_ASM.search(lines[line - 1]):
            yield f"{path}:{line}: asm; only cpu/processor.hpp, cuda/ptx.cuh and sm90's wgmma have it"


def check_file(root, path):
    place = source.place_of(path)
    layer = layers.layer_of(place)
    text = source.read(root, path)
    code = source.without_text(text)
    if not layers.ASM.match(path):
        yield from _assembly(path, text, code)
    if layer is None:
        return
    for found in _INCLUDE.finditer(text):
        ours, theirs = found.groups()
        wrong = _quoted(layer, place, ours) if ours else _angled(layer, theirs)
        if wrong:
            yield f"{path}:{_line(text, found.start(0) + 1)}: #include {ours or theirs}: {wrong}"
    for pattern, why in layers.FORBIDDEN_WORDS.get(layer, []):
        for found in re.finditer(pattern, code):
            yield f"{path}:{_line(code, found.start())}: {found.group(0)} in {layer}: {why}"


def check(root):
    return [finding for path in source.code_files(root) for finding in check_file(root, path)]


if __name__ == "__main__":
    findings = check(sys.argv[1])
    print("\n".join(findings) or "every include follows the layers")
    sys.exit(1 if findings else 0)
