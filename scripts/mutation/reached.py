# SPDX-License-Identifier: Apache-2.0
"""Which tests reach a line of opwest or a C file of the Zephyr module, as reach.py recorded it."""

from __future__ import annotations

import ast
import json
import os
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from coverage.numbits import numbits_to_nums

HERE = Path(__file__).resolve().parent
CONFIGURATION = """[run]
source_pkgs = opwest
parallel = true
patch = subprocess
core = ctrace
data_file = {folder}/coverage/data
disable_warnings = module-not-imported,no-data-collected,dynamic-conflict
"""


def record(tree: Path, folder: Path, arguments: Sequence[str]) -> None:
    """Run the tests of a tree under coverage.py, and combine their records in a directory."""
    (folder / "coverage").mkdir(parents=True)
    (folder / "coveragerc").write_text(CONFIGURATION.format(folder=folder), encoding="utf-8")
    environment = {
        **os.environ,
        "OPWEST_REACH": str(folder / "records"),
        "OPWEST_REACH_TREE": str(tree),
        "PYTHONPATH": os.pathsep.join([str(HERE), str(tree / "generator")]),
    }
    python = tree / ".venv" / "bin" / "python"
    words = ["-m", "coverage", "run", f"--rcfile={folder / 'coveragerc'}", "-m", "pytest", "-q", "-p", "reach"]
    # Failed tests are recorded as failed, and kill no mutant.
    subprocess.run([python, *words, *arguments], cwd=tree, env=environment, check=False)
    combine = [python, "-m", "coverage", "combine", "-q", f"--rcfile={folder / 'coveragerc'}"]
    subprocess.run([*combine, f"--data-file={folder / 'reached.db'}", folder / "coverage"], cwd=tree, check=True)


class Reached:
    """The records of a directory."""

    def __init__(self, folder: Path) -> None:
        self._data = sqlite3.connect(f"file:{folder / 'reached.db'}?mode=ro", uri=True, check_same_thread=False)
        self.seconds: dict[str, float] = {}
        self._users: dict[str, set[str]] = defaultdict(set)
        sources: dict[str, set[str]] = defaultdict(set)
        outcomes: dict[str, str] = {}
        for path in sorted((folder / "records").glob("reach-*.json")):
            found = json.loads(path.read_text(encoding="utf-8"))
            self.seconds.update(found["seconds"])
            outcomes.update(found["outcomes"])
            for user, contexts in found["shared"].items():
                for context in contexts:
                    self._users[context].add(user)
            for context, names in found["sources"].items():
                for name in names:
                    sources[name].add(context)
        self.passed = frozenset(test for test, outcome in outcomes.items() if outcome == "passed" and "\n" not in test)
        self.failed = frozenset(test for test, outcome in outcomes.items() if outcome == "failed")
        self._sources = {name: self._tests(contexts) for name, contexts in sources.items()}

    def tests_of(self, tree: Path, path: str, lines: Sequence[int]) -> list[str]:
        """Return the tests that reach a line of a file, the fastest first.

        A line that runs when the module is imported is reached by all tests that reach a function of the file, or, in
        a file of data, one of the modules that import it.
        """
        if not path.endswith(".py"):
            return self._ordered(self._sources.get(path, ()))
        tree_of_file = ast.parse((tree / path).read_bytes())
        functions = _lines_of_functions(tree_of_file)
        if functions.intersection(lines):
            return self._ordered(self._tests(self._contexts(path, functions.intersection(lines))))
        found = self._tests(self._contexts(path, functions))
        if not found:
            for user in _importing(tree, path):
                inner = _lines_of_functions(ast.parse((tree / user).read_bytes()))
                found |= self._tests(self._contexts(user, inner))
        return self._ordered(found)

    def _contexts(self, path: str, lines: Iterable[int]) -> set[str]:
        wanted = set(lines)
        rows = self._data.execute(
            "select context.context, line_bits.numbits from line_bits"
            " join file on file.id = line_bits.file_id join context on context.id = line_bits.context_id"
            " where file.path like ?",
            (f"%/{path}",),
        )
        return {context for context, bits in rows if wanted.intersection(numbits_to_nums(bits))}

    def _tests(self, contexts: Iterable[str]) -> set[str]:
        found: set[str] = set()
        left = list(contexts)
        while left:
            context = left.pop()
            if context not in found:
                found.add(context)
                left += self._users.get(context, ())
        return found

    def _ordered(self, contexts: Iterable[str]) -> list[str]:
        return sorted(self.passed.intersection(contexts), key=lambda test: (self.seconds.get(test, 0.0), test))


def _lines_of_functions(tree: ast.Module) -> set[int]:
    """Return the lines of the bodies of functions; the others run at the import."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Lambda):
            found.update(range(node.body.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _importing(tree: Path, path: str) -> list[str]:
    """Return the files that import a module."""
    module = path.removeprefix("generator/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    parent, _, name = module.rpartition(".")
    found = []
    for other in sorted((tree / "generator" / "opwest").rglob("*.py")):
        for node in ast.walk(ast.parse(other.read_bytes())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            inside = isinstance(node, ast.ImportFrom) and node.module == parent
            if module in names or (inside and any(one.name == name for one in node.names)):
                found.append(other.relative_to(tree).as_posix())
                break
    return found


if __name__ == "__main__":
    sys.exit("python scripts/mutation")
