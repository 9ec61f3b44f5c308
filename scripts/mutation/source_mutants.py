# SPDX-License-Identifier: Apache-2.0
"""Mutants of Python and C files: one changed expression of a file, as a replacement of a part of its text.

A change is one that a person could make by mistake: another comparison, operator or number, a negated condition, a
call left out, another string. Docstrings, annotations, and the directives and comments of C do not change.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_C_OPERATORS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "/": "*", "%": "/", "|": "&", "&": "|", "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=",
}  # fmt: skip
_C_TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"|(?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+)(?=[uUlL]*\b)(?!\.))|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<operator>->|\+\+|--|<<=|>>=|[-+*/%&|^<>=!]=|&&|\|\||<<|>>|[-+*/%&|^<>=!~])|(?P<other>[^\s])",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Mutant:
    """A file in which `after` replaces the bytes from `start` to `end`, which are `before`."""

    path: str
    function: str
    lines: tuple[int, ...] = field(compare=False)
    start: int = field(compare=False)
    end: int = field(compare=False)
    before: str
    after: str
    number: int
    """Counts the equal changes of a function."""

    @property
    def name(self) -> str:
        """Return the name, which stays the same if other functions of the file change."""
        return f"{self.path}:{self.function}: {_short(self.before)} -> {_short(self.after)} #{self.number}"

    def rank(self, seed: int) -> str:
        """Return the place of this mutant in the order of a seed."""
        return hashlib.sha256(f"{seed} {self.name} {self.before} {self.after}".encode()).hexdigest()

    def applied(self, content: bytes) -> bytes:
        """Return the changed content of the file. Raises ValueError if the file is another one."""
        if content[self.start : self.end].decode() != self.before:
            raise ValueError(f"{self.name}: not in this version of the file")
        return content[: self.start] + self.after.encode() + content[self.end :]


def sample(root: Path, count: int, seed: int, only: Sequence[str] = ()) -> tuple[int, list[Mutant]]:
    """Return the number of mutants of the files of a tree, and `count` random ones."""
    python = (root / "generator" / "opwest").rglob("*.py")
    sources = (root / "zephyr_module" / "src").rglob("*.[ch]")
    found: list[Mutant] = []
    for path in sorted([*python, *sources]):
        name = path.relative_to(root).as_posix()
        if not only or any(name.startswith(prefix) for prefix in only):
            content = path.read_bytes()
            found += _numbered(name, content, of_python(content) if path.suffix == ".py" else of_c(content.decode()))
    return len(found), sorted(found, key=lambda mutant: mutant.rank(seed))[:count]


def _numbered(path: str, content: bytes, changes: Iterator[tuple[str, int, int, int, int, str]]) -> list[Mutant]:
    counts: Counter[tuple[str, str, str]] = Counter()
    found = []
    for function, first, last, start, end, after in changes:
        before = content[start:end].decode()
        if before == after:
            continue
        counts[function, before, after] += 1
        number = counts[function, before, after]
        found.append(Mutant(path, function, tuple(range(first, last + 1)), start, end, before, after, number))
    return found


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def of_python(content: bytes) -> Iterator[tuple[str, int, int, int, int, str]]:
    """Yield (function, first line, last line, start, end, replacement) of each change; positions in bytes."""
    starts = [0]
    for line in content.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for function, statement, node in _nodes(ast.parse(content), "", None):
        for made in _changes(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            text = made if isinstance(made, str) else ast.unparse(ast.fix_missing_locations(made))
            simple = isinstance(made, (str, ast.Constant))
            # A tracer can attribute an expression to any of its statement's lines.
            last = max(node.end_lineno or node.lineno, node.lineno)
            yield function, min(node.lineno, statement), last, start, end, text if simple else f"({text})"


def _nodes(node: ast.AST, function: str, statement: int | None) -> Iterator[tuple[str, int, ast.AST]]:
    """Yield (function, first line of the statement, node) of all nodes that can change."""
    name = getattr(node, "name", "") if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else ""
    inner = f"{function}.{name}".strip(".") if name else function
    for key, value in ast.iter_fields(node):
        if key in ("annotation", "returns", "decorator_list", "type_params", "type_comment", "format_spec"):
            continue
        if isinstance(node, ast.JoinedStr):
            continue  # before Python 3.12, expressions in f-strings have wrong positions
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, (ast.Import, ast.ImportFrom)):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue  # a docstring
            at = child.lineno if isinstance(child, ast.stmt) else (statement or getattr(child, "lineno", 0))
            if isinstance(child, (ast.expr, ast.Expr)):
                yield inner, at, child
            yield from _nodes(child, inner, at)


def _changes(node: ast.AST) -> Iterator[ast.AST | str]:
    made: ast.AST
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        made = copy.deepcopy(node)
        made.ops[0] = _COMPARISONS[type(node.ops[0])]()
        yield made
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        made = copy.deepcopy(node)
        made.op = _OPERATORS[type(node.op)]()
        yield made
    elif isinstance(node, ast.BoolOp):
        made = copy.deepcopy(node)
        made.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield made
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "None"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield ast.Constant(node.value + 1)
        elif isinstance(node.value, str) and node.value:
            yield ast.Constant(f"XX{node.value}")


def of_c(text: str) -> Iterator[tuple[str, int, int, int, int, str]]:
    """Yield (function, line, line, start, end, replacement) of each change; positions in bytes."""
    depth, function, last_word, before = 0, "", "", ""
    for token in _C_TOKEN.finditer(text):
        kind, word = token.lastgroup, token[0]
        if kind == "skip":
            before = before if word.startswith(("/", "#")) or word.lstrip().startswith("#") else "literal"
            continue
        if depth == 0 and word == "(" and last_word:
            function = last_word
        depth += {"{": 1, "}": -1}.get(word, 0)
        after = ""
        if depth > 0 and kind == "operator":
            binary = before in (")", "]", "literal", "number", "word")
            if word == "!":
                after = " "
            elif binary or word not in ("-", "+", "&"):
                after = _C_OPERATORS.get(word, "")
        elif depth > 0 and kind == "number":
            after = str(int(word, 0) + 1) if word.lower().startswith("0x") or not word.startswith("0") else "1"
        if after:
            start = len(text[: token.start()].encode())
            line = text.count("\n", 0, token.start()) + 1
            yield function, line, line, start, start + len(word.encode()), after
        if kind == "word":
            last_word = word
        before = "word" if kind == "word" else "number" if kind == "number" else word
