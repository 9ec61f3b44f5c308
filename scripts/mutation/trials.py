# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that reach each mutant, in copies of a tree, until one fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

from reached import Copy, Reached
from source_mutants import Mutant

STEPS = (10.0, 60.0)
"""Recorded seconds of the first runs of a mutant: most are killed in these."""
STARTING = 120.0
"""Seconds that a run takes in addition: its start, and the modules of its tests."""
MAX_TESTS = 2000
"""Tests of one run, of which a process collects the files."""
KILLED, TIMEOUT, SURVIVED, NOT_REACHED = "killed", "timeout", "survived", "not reached"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """What the tests found about a mutant."""

    name: str
    state: str
    by: str = ""
    """The test that failed."""
    tests: int = 0
    left: int = 0
    """The tests that reach the mutant and did not run, because of the limit of seconds."""
    seconds: float = 0


class MutantCopy(Copy):
    """A copy in which one mutant at a time is written."""

    def __init__(self, tree: Path, folder: Path) -> None:
        super().__init__(tree, folder)
        self._time = int(time.time()) - 10**6

    def write(self, path: str, content: bytes) -> None:
        """Write a file with a time of its own: Python compares only size and time with its compiled modules."""
        self._time += 2
        (self.folder / path).write_bytes(content)
        os.utime(self.folder / path, (self._time, self._time))

    def run(self, tests: Iterable[str], seconds: float) -> tuple[str, str]:
        """Run tests until the first failure; return the state and the test that failed."""
        listed = self.temporary / "tests.txt"
        listed.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
        words = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tier=all", "--tb=no", f"@{listed}"]
        process = subprocess.Popen(
            [self.folder / ".venv/bin/python", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=5 * seconds + STARTING)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return TIMEOUT, ""
        if process.returncode == 0:
            return SURVIVED, ""
        failed = _FAILED.search(output)
        return KILLED, failed[1] if failed else f"exit code {process.returncode}: {output[-300:]}"


class Trials:
    """Judges mutants of a tree by the recorded tests, in copies of it; results are appended to a file."""

    def __init__(self, tree: Path, reached: Reached, folder: Path, limit: float, jobs: int, first: Path | None) -> None:
        self.tree, self.reached, self.limit, self.jobs = tree, reached, limit, jobs
        self.results = folder / "results.jsonl"
        self._first = {name: result.by for name, result in _read(first).items()} if first else {}
        """The tests that killed the mutants of another tree: they run first."""
        self._copies: Queue[MutantCopy] = Queue()
        for number in range(jobs):
            self._copies.put(MutantCopy(tree, folder / f"copy{number}"))
        self._sound: dict[str, bool] = {}
        self._lock = threading.Lock()

    def judge(self, mutants: Sequence[Mutant]) -> list[Result]:
        """Return the results of mutants; those of an earlier, ended run are kept."""
        known = _read(self.results) if self.results.exists() else {}
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda one: known.get(one.name) or self._judged(one), mutants))

    def _judged(self, mutant: Mutant) -> Result:
        copy = self._copies.get()
        started = time.monotonic()
        original = (self.tree / mutant.path).read_bytes()
        try:
            copy.write(mutant.path, mutant.applied(original))
            result = self._result(mutant, copy, original, started)
        finally:
            copy.write(mutant.path, original)
            self._copies.put(copy)
        with self._lock, self.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")
            print(f"{result.state}: {result.name}" + (f" by {result.by}" if result.by else ""), flush=True)
        return result

    def _result(self, mutant: Mutant, copy: MutantCopy, original: bytes, started: float) -> Result:
        tests = self.reached.tests_of(mutant)
        tests.sort(key=lambda test: test != self._first.get(mutant.name))
        if not tests:
            return Result(mutant.name, NOT_REACHED)
        tried, used = 0, 0.0
        left = [test for test in tests if self._sound.get(test, True)]
        for step in (*STEPS, self.limit):
            while left:
                part, seconds = self._part(left, min(step, self.limit - used))
                if not part:
                    break
                state, by = copy.run(part, seconds)
                if state == KILLED and not self._fails_only_here(mutant, copy, original, by):
                    left.remove(by)
                    continue
                tried += len(part)
                left = [test for test in left if test not in part]
                if state != SURVIVED:
                    return Result(mutant.name, state, by, tried, len(left), time.monotonic() - started)
                used += seconds
                if step in STEPS:
                    break
        return Result(mutant.name, SURVIVED, "", tried, len(left), time.monotonic() - started)

    def _part(self, tests: Sequence[str], most: float) -> tuple[dict[str, None], float]:
        """Return the first tests that take at most some seconds together, with what they share, and their seconds."""
        part: dict[str, None] = {}
        made: set[str] = set()
        total = 0.0
        for test in tests:
            needed = self.reached.needed_by(test) - made
            seconds = sum(self.reached.seconds[one] for one in needed)
            if total + seconds <= most and len(part) < MAX_TESTS:
                part[test] = None
                made |= needed
                total += seconds
        return part, total

    def _fails_only_here(self, mutant: Mutant, copy: MutantCopy, original: bytes, test: str) -> bool:
        """Return whether a test passes without the mutant; each test is tried once."""
        if test not in self.reached.passed:
            return True  # the files of tests could not be collected
        if test not in self._sound:
            copy.write(mutant.path, original)
            self._sound[test] = copy.run([test], 60)[0] == SURVIVED
            copy.write(mutant.path, mutant.applied(original))
            if not self._sound[test]:
                print(f"not used, it fails without a mutant: {test}", flush=True)
        return self._sound[test]


def _read(path: Path) -> dict[str, Result]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {found["name"]: Result(**found) for found in map(json.loads, lines)}
