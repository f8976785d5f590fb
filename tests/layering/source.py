"""The files of the project, as the checks see them."""

import os
import re

CODE = (".hpp", ".h", ".cc", ".c", ".cuh", ".cu")
_TREES = ("include", "src", "tools", "tests", "bench", "examples")

_LITERALS_AND_COMMENTS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![\w'])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


def code_files(root):
    """Paths, from the root, of everything that is compiled."""
    for tree in _TREES:
        for folder, folders, names in os.walk(os.path.join(root, tree)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(CODE):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def without_text(code):
    """The code with comments and literals blanked, line numbers kept."""

    def blank(match):
        text = match.group(0)
        kept = '""' if text[0] in "\"R" else " "
        return kept + "\n" * text.count("\n")

    return _LITERALS_AND_COMMENTS.sub(blank, code)


def place_of(path):
    """A path as an include would write it: src/, include/ and tools/ are roots, the other trees are not."""
    for root in ("src/", "include/", "tools/"):
        if path.startswith(root):
            return path[len(root):]
    return path
