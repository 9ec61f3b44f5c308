# SPDX-License-Identifier: Apache-2.0
"""Writes probes into a copy of a tree: each records that a test evaluates the expression that a mutant changes.

A probe takes the place of the expression: `(hit(NUMBER), EXPRESSION)[1]`. Expressions that are evaluated when a module
is imported have probes in all functions of the file instead, or, in a file of data, in those of files that import it.
"""

from __future__ import annotations

import ast
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from source_mutants import Mutant

HITS = Path("generator/opwest/hits.py")
"""The module that probes call: part of the package, so that child processes and packages of the copy have it too."""
_HIT = '__import__("opwest.hits", fromlist=["hit"]).hit'


def write_probes(root: Path, mutants: Sequence[Mutant]) -> None:
    """Change the Python files of a tree: the number of a probe is the index of its mutant."""
    inside: dict[str, list[tuple[int, Mutant]]] = defaultdict(list)
    functions: dict[str, set[int]] = defaultdict(set)
    for number, mutant in enumerate(mutants):
        if not mutant.path.endswith(".py"):
            continue
        text = (root / mutant.path).read_bytes()
        in_function = _lines_of_functions(ast.parse(text)).intersection(mutant.lines)
        if in_function and _parses(_wrapped(text, [(number, mutant)])):
            inside[mutant.path].append((number, mutant))
        else:
            for path in _with_functions(root, mutant.path):
                functions[path].add(number)
    for path in inside.keys() | functions.keys():
        text = (root / path).read_bytes()
        # The expressions first: their positions are those of the unchanged file.
        text = _wrapped(text, inside[path])
        if functions[path]:
            text = _in_functions(text, functions[path])
        ast.parse(text)
        (root / path).write_bytes(text)
    shutil.copy(Path(__file__).with_name(HITS.name), root / HITS)


def _lines_of_functions(tree: ast.Module) -> set[int]:
    """Return the lines of the bodies of functions; the others run at the import."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Lambda):
            found.update(range(node.body.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _parses(text: bytes) -> bool:
    """Return whether this is Python: a constant of a pattern, for example, cannot be another expression."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _wrapped(text: bytes, mutants: Iterable[tuple[int, Mutant]]) -> bytes:
    """Return the text with a probe around each expression; expressions contain others, or are disjoint."""
    inserted: list[tuple[int, int, int, str]] = []
    for number, mutant in mutants:
        length = mutant.end - mutant.start
        # At one position: the ends of the shorter expressions, then the beginnings of the longer ones.
        inserted.append((mutant.start, 1, -length, f"({_HIT}({number}), "))
        inserted.append((mutant.end, 0, length, ")[1]"))
    for position, _, _, word in sorted(inserted, key=lambda one: one[:3], reverse=True):
        text = text[:position] + word.encode() + text[position:]
    return text


def _in_functions(text: bytes, numbers: Iterable[int]) -> bytes:
    """Return the text with a probe at the beginning of each function, after its docstring."""
    lines = text.decode().split("\n")
    call = f"{_HIT}({', '.join(map(str, sorted(numbers)))})"
    starts: dict[int, int] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[min(1, len(node.body) - 1)] if ast.get_docstring(node) is not None else node.body[0]
            if first.lineno > node.lineno:
                decorators = getattr(first, "decorator_list", [])
                starts[min([first.lineno, *(one.lineno for one in decorators)])] = first.col_offset
    for line, column in sorted(starts.items(), reverse=True):
        lines.insert(line - 1, " " * column + call)
    return "\n".join(lines).encode()


def _with_functions(root: Path, path: str) -> list[str]:
    """Return a file, or, if it has no functions, the files that import it."""
    if _lines_of_functions(ast.parse((root / path).read_bytes())):
        return [path]
    return [user for user in _importing(root, path) if _lines_of_functions(ast.parse((root / user).read_bytes()))]


def _importing(root: Path, path: str) -> list[str]:
    """Return the files that import a module."""
    module = path.removeprefix("generator/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    parent, _, name = module.rpartition(".")
    found = []
    for other in sorted((root / "generator" / "opwest").rglob("*.py")):
        for node in ast.walk(ast.parse(other.read_bytes())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            within = isinstance(node, ast.ImportFrom) and node.module == parent
            if module in names or (within and any(one.name == name for one in node.names)):
                found.append(other.relative_to(root).as_posix())
                break
    return found
