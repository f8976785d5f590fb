#!/usr/bin/env python3
"""Fails on files and functions that outgrew their bounds, on stray macros and conditions, and on headers that no
CMakeLists.txt lists (an unlisted header is not compiled alone).

usage: structure.py <project root>
"""

import os
import re
import sys

import source

FILE_LINES = 500
FUNCTION_LINES = 60
ROLE_LINES = 80

MACROS = {
    "MEGAMOE_PROTOCOL",
    "MEGAMOE_DEVICE",
    "MEGAMOE_UNROLL",
    "MEGAMOE_NO_UNROLL",
    "MEGAMOE_CHECK",
    "MEGAMOE_CUDA_CHECK",
}
# What Highway asks its users to define before its headers.
_HIGHWAY_MACROS = {"HWY_TARGET_INCLUDE", "HWY_DISABLED_TARGETS"}
# C has neither constexpr values nor a namespace, so its header defines initializers and is extern "C".
_C_HEADER = "include/megamoe/megamoe.h"
# Each the one place of its layer that asks what it is compiled for.
_CONDITIONAL = {"src/base/portable.hpp", "src/machine/cpu/processor.hpp"}

_NAMES = re.compile(r"(^|_)(utils?|common|helpers?|impl|misc|manager|fast)(_|\.|$)")
_TYPE_OR_NAMESPACE = re.compile(r"^(template <.*?> ?(requires .*)?)?\b(namespace|extern|class|struct|union|enum)\b")


def _is_generated(path):
    return "/generated/" in path


def file_lines(path, text):
    count = text.count("\n")
    if count > FILE_LINES:
        yield f"{path}: {count} lines; a file has at most {FILE_LINES}"


def _statement(lines, number):
    """The statement that ends at line `number`, as one line."""
    start = number
    while start > 0 and lines[start - 1].strip() and not lines[start - 1].rstrip().endswith((";", "{", "}", ":")):
        start -= 1
    return " ".join(line.strip() for line in lines[start:number + 1])


def _closing(lines, number):
    """The line of the brace that closes the one at the end of line `number`."""
    depth = 1
    for end in range(number + 1, len(lines)):
        for brace in re.findall(r"[{}]", lines[end]):
            depth += 1 if brace == "{" else -1
            if depth == 0:
                return end
    return len(lines) - 1


def function_lines(path, code):
    """From the opening brace, which ends its line in formatted source, to the closing one."""
    bound = ROLE_LINES if "/roles/" in path else FUNCTION_LINES
    lines = ["" if line.startswith("#") else line for line in code.split("\n")]
    for number, line in enumerate(lines):
        if not line.endswith("{") or ")" not in line or _TYPE_OR_NAMESPACE.match(_statement(lines, number)):
            continue
        count = _closing(lines, number) - number + 1
        if count > bound:
            yield f"{path}:{number + 1}: {count} lines; a function has at most {bound}"


def _is_allowed(path, name):
    if path.endswith("-inl.hpp"):  # Highway's guard of a file that is included once for each instruction set
        return name.endswith("_INL")
    if path.startswith("tests/"):  # GoogleTest's assertions are macros, so that a failure names its line
        return name.startswith("EXPECT_")
    return path == _C_HEADER or name in MACROS or name in _HIGHWAY_MACROS


def macros(path, code):
    for found in re.finditer(r"^\s*#\s*define\s+(\w+)", code, re.MULTILINE):
        name = found.group(1)
        if not _is_allowed(path, name):
            yield f"{path}: #define {name}; the project has six macros: {', '.join(sorted(MACROS))}"


def conditions(path, code):
    """`#if` belongs to two files, and to heads of files, before the first declaration. What Highway's own macros
    select is another matter: a file that it includes once for each instruction set can't do without."""
    if path in _CONDITIONAL:
        return
    in_head = True
    for number, line in enumerate(code.split("\n"), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            in_head = False
        if in_head or not re.match(r"#\s*if", text):
            continue
        if re.search(r"\bHWY_\w+", text) or (path == _C_HEADER and "__cplusplus" in text):
            continue
        yield f"{path}:{number}: {text}: conditions belong to portable.hpp, processor.hpp and heads of files"


def names(path, _):
    name = os.path.basename(path)
    if _NAMES.search(name):
        yield f"{path}: a file is named after its main type or its one idea"


def reminders(path, text):
    for found in re.finditer(r"\b(TODO|FIXME|XXX)\b", text):
        yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {found.group(0)}; finish it, or write an issue"


def pragma_once(path, text):
    if path.endswith((".hpp", ".cuh")) and "#pragma once" not in text and not path.endswith("-inl.hpp"):
        yield f"{path}: no #pragma once"


def _owners(path):
    """Folders whose CMakeLists.txt may list the file: its own and those above; the public headers have two."""
    if path.startswith("include/"):
        return ["src/base", "src/api"]
    folder, owners = os.path.dirname(path), []
    while folder:
        owners.append(folder)
        folder = os.path.dirname(folder)
    return owners


def listed(root, path):
    """Every file of the product is in a CMakeLists.txt; a header that is not would not be compiled alone. Device
    headers, Highway's parts and the headers of an executable can't be."""
    if not path.startswith(("src/", "include/")) or path.endswith((".cuh", "-inl.hpp")):
        return
    name = re.compile(rf"(?<![\w.-]){re.escape(os.path.basename(path))}(?![\w.-])")
    for owner in _owners(path):
        build = os.path.join(owner, "CMakeLists.txt")
        if os.path.exists(os.path.join(root, build)) and name.search(source.read(root, build)):
            return
    yield f"{path}: no CMakeLists.txt lists it"


def check(root):
    findings = []
    for path in source.code_files(root):
        if _is_generated(path):
            continue
        text = source.read(root, path)
        code = source.without_text(text)
        for gate in (file_lines, names, reminders, pragma_once):
            findings += gate(path, text)
        for gate in (function_lines, macros, conditions):
            findings += gate(path, code)
        findings += listed(root, path)
    return findings


if __name__ == "__main__":
    result = check(sys.argv[1])
    print("\n".join(result) or "sizes, names, macros and conditions are within bounds")
    sys.exit(1 if result else 0)
