"""PTX as text: one statement a line, its parts, and which statement may follow which."""

import re

_STATEMENT = re.compile(
    r"^(?P<indent>\s*)(?P<opens>\{\s*)?(?P<predicate>@!?%?[\w$]+\s+)?(?P<op>[a-z][\w.:]*)"
    r"(?:\s+(?P<rest>[^;]*)|(?=[{\[])(?P<tight>[^;]*))?;\s*(?P<closes>\}?)\s*$")
_LABEL = re.compile(r"^\s*([$\w]+):\s*$")
_DIRECTIVE = re.compile(r"^\s*\.(global|const|visible|extern|shared|weak|file|loc|section)")
_PIECE = re.compile(r"^([{}])\s*|^([$\w]+:)(?!:)\s*|^([^;]*;)\s*")


class Refused(Exception):
    """What the rewriter does not know, or knows to be wrong; a sentence."""


class Statement:
    def __init__(self, match):
        self.indent = match["indent"]
        self.opens = match["opens"] or ""
        self.predicate = (match["predicate"] or "").strip()  # with its @
        self.op = match["op"]
        self.operands = split_operands(match["rest"] or match["tight"] or "")
        self.closes = match["closes"] or ""

    def is_any(self, *starts):
        return self.op.startswith(starts)

    def registers(self):
        """Every name among the operands, the predicate's too."""
        return set(re.findall(r"%?[\w$]+", " ".join([self.predicate, *self.operands])))


def split_operands(text):
    """At the commas outside brackets."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return parts + [current.strip()] if current.strip() else parts


def inside(operand):
    """[%r1] -> %r1"""
    return operand.strip().strip("[]").strip()


def elements(operand):
    """{%r1, %r2} -> its names"""
    return [name.strip() for name in operand.strip().strip("{}").split(",")]


def one_statement_a_line(text):
    """Assembly in C++ puts several on one."""
    lines = []
    for line in text.splitlines():
        code = line.split("//")[0].rstrip()
        is_plain = not re.search(r";\s*[^\s}]", code) and not re.match(r"^\s*(\{\s*[^\s]|[$\w]+:\s*[^\s])", code)
        if not code or '"' in code or is_plain or _DIRECTIVE.match(code):
            lines.append(line)
            continue
        indent, rest = re.match(r"^(\s*)(.*)$", code).groups()
        while rest:
            piece = _PIECE.match(rest)
            if piece is None:
                lines.append(indent + rest)
                break
            lines.append(indent + piece.group(0).strip())
            rest = rest[piece.end():]
    return lines


def parse(line):
    """The statement of a line; None for labels, directives, braces and what goes on in the next line."""
    code = line.split("//")[0].rstrip()
    match = _STATEMENT.match(code) if ";" in code else None
    return Statement(match) if match else None


def label_of(line):
    match = _LABEL.match(line.split("//")[0])
    return match.group(1) if match else None


class Program:
    """The lines of a module, parsed, with control flow inside each function."""

    def __init__(self, text):
        self.lines = one_statement_a_line(text)
        self.statements = [parse(line) for line in self.lines]
        self.functions = []  # (first, behind the last)
        self._labels = {}  # (function's first line, name) -> line
        self._function_of = [None] * len(self.lines)
        self._find_functions()

    def _find_functions(self):
        first, depth = None, 0
        for number, line in enumerate(self.lines):
            code = re.sub(r'"[^"]*"', "", line.split("//")[0])
            before, depth = depth, depth + code.count("{") - code.count("}")
            if before == 0 and depth > 0:
                first = number
            elif depth == 0 and first is not None:
                self.functions.append((first, number))
                first = None
            if first is None:
                continue
            self._function_of[number] = first
            name = label_of(line)
            if name is None:
                continue
            if (first, name) in self._labels:
                raise Refused(f"line {number + 1}: label {name} stands twice in a function; "
                              "loops belong outside inline assembly")
            self._labels[first, name] = number

    def target(self, number):
        """Where the branch of that line goes."""
        name = self.statements[number].operands[0]
        found = self._labels.get((self._function_of[number], name))
        if found is None:
            raise Refused(f"line {number + 1}: branch to {name}, which is no label of its function")
        return found

    def successors(self, number):
        """The lines that may come next."""
        statement = self.statements[number]
        nexts = [number + 1]
        if statement is not None:
            if statement.is_any("bra"):
                nexts = [self.target(number)] + (nexts if statement.predicate else [])
            elif statement.is_any("brx"):
                function = self._function_of[number]
                nexts = [line for (first, _), line in self._labels.items() if first == function]
            elif statement.is_any("ret", "exit", "trap") and not statement.predicate:
                nexts = []
        return [n for n in nexts if n < len(self.lines) and self._function_of[n] == self._function_of[number]]

    def in_function_of(self, number):
        """(line, statement) of everything in the function that the line belongs to."""
        first = self._function_of[number]
        for begin, end in self.functions:
            if begin == first:
                return [(n, self.statements[n]) for n in range(begin, end) if self.statements[n] is not None]
        return []

    def reachable(self, start, stops):
        """Lines from `start` on, without passing a line for which stops(line) holds; those are not in it."""
        seen, todo = set(), [start]
        while todo:
            number = todo.pop()
            if number in seen or stops(number):
                continue
            seen.add(number)
            todo += self.successors(number)
        return seen
