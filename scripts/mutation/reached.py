# SPDX-License-Identifier: Apache-2.0
"""Which tests reach each mutant: a run of the tests in a copy of the tree with probes, and what it recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from probes import write_probes
from source_mutants import Mutant

HERE = Path(__file__).resolve().parent


class Copy:
    """A clone of the last commit of a tree, with its environment and its shared data."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", "--shared", tree, folder], check=True)
        (folder / ".venv").symlink_to(tree / ".venv")
        data = folder.with_name("shared")
        if (tree.parent / "shared").exists() and not data.exists():
            data.symlink_to((tree.parent / "shared").resolve())
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder / "generator"),
            "TMPDIR": str(folder.with_name(f"{folder.name}.tmp")),
            "CI": "true",
        }
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)

    @property
    def temporary(self) -> Path:
        """The directory for temporary files, which is empty at first."""
        path = Path(self.environment["TMPDIR"])
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def python(self, *words: str) -> list[str]:
        """Return a command."""
        return [str(self.folder / ".venv" / "bin" / "python"), *words]


def record(tree: Path, folder: Path, mutants: Sequence[Mutant], arguments: Sequence[str]) -> None:
    """Run the tests of a tree with probes. Failed tests are recorded as failed, and kill no mutant."""
    shutil.rmtree(folder, ignore_errors=True)
    records = folder / "records"
    records.mkdir(parents=True)
    (records / "hits").touch()
    (records / "hits").chmod(0o666)  # a part of the tests runs without root's rights
    copy = Copy(tree, folder / "probed")
    write_probes(copy.folder, mutants)
    # A part of the tests reads the committed files.
    author = ("-c", "user.name=probes", "-c", "user.email=probes")
    subprocess.run(["git", "add", "-A", "generator"], cwd=copy.folder, check=True)
    subprocess.run(["git", *author, "commit", "-q", "-a", "--allow-empty", "-m", "Probes"], cwd=copy.folder, check=True)
    environment = {
        **copy.environment,
        "TMPDIR": str(copy.temporary),
        "OPWEST_REACH": str(records),
        "PYTHONPATH": os.pathsep.join([copy.environment["PYTHONPATH"], str(HERE)]),
    }
    words = copy.python("-m", "pytest", "-q", "-p", "reach", *arguments)
    code = subprocess.run(words, cwd=copy.folder, env=environment, check=False).returncode
    if code not in (0, 1):  # of pytest: all tests passed, or some failed
        sys.exit(f"no record of the tests: pytest ended with exit code {code}")
    (folder / "sample.json").write_text(json.dumps([mutant.name for mutant in mutants]), encoding="utf-8")


class Reached:
    """The records of a directory."""

    def __init__(self, folder: Path, mutants: Sequence[Mutant]) -> None:
        known = json.loads((folder / "sample.json").read_text(encoding="utf-8"))
        if [mutant.name for mutant in mutants] != known[: len(mutants)]:
            sys.exit(f"{folder} records the tests for other mutants: remove it, and run this command again")
        self.seconds: dict[str, float] = defaultdict(float)
        """Of the tests and of what they share."""
        self._users: dict[str, set[str]] = defaultdict(set)
        self._shared: dict[str, set[str]] = defaultdict(set)
        outcomes: dict[str, str] = {}
        for path in sorted((folder / "records").glob("reach-*.json")):
            found = json.loads(path.read_text(encoding="utf-8"))
            for name, seconds in found["seconds"].items():
                self.seconds[name] = max(self.seconds[name], seconds)
            outcomes.update(found["outcomes"])
            for user, contexts in found["shared"].items():
                self._shared[user].update(contexts)
                for context in contexts:
                    self._users[context].add(user)
        self.passed = frozenset(test for test, outcome in outcomes.items() if outcome == "passed" and "\n" not in test)
        self._hits: dict[str, set[str]] = defaultdict(set)
        for line in (folder / "records" / "hits").read_text(encoding="utf-8").splitlines():
            reached, _, context = line.partition("\t")
            self._hits[reached].add(context.encode().decode("unicode_escape"))
        self._needed: dict[str, set[str]] = {}
        self._numbers = {mutant.name: str(number) for number, mutant in enumerate(mutants)}

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, or compile its file, the fastest first with what they share."""
        if mutant.path.endswith(".py"):
            contexts = self._hits[self._numbers[mutant.name]]
        else:
            contexts = self._hits["*"] | self._hits[mutant.path.rsplit("/", 1)[-1]]
        found = self.passed.intersection(_closure(contexts, self._users))
        return sorted(found, key=lambda test: (sum(self.seconds[one] for one in self.needed_by(test)), test))

    def needed_by(self, test: str) -> set[str]:
        """Return a test and what it shares with others, directly or not."""
        if test not in self._needed:
            self._needed[test] = _closure([test], self._shared)
        return self._needed[test]


def _closure(contexts: Iterable[str], next_of: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = list(contexts)
    while left:
        context = left.pop()
        if context not in found:
            found.add(context)
            left += next_of.get(context, ())
    return found
