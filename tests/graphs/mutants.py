# SPDX-License-Identifier: Apache-2.0
"""Mutants of the passes of the importer: `python tests/graphs/mutants.py --count 240`.

A mutant is one changed expression of a function. The changed code replaces that of the function in a child process,
which imports models that run its line: of 300 random graphs, and of the tests of operators. A mutant is caught if
the import's own proof fails, if another model is refused, or if the emitted C has other results than the runtime of
the format. A mutant that survives changes a choice (other files, all of them right), or nothing in these models.
"""

import argparse
import ast
import collections
import contextlib
import copy
import hashlib
import importlib
import itertools
import json
import os
import signal
import sys
import tempfile
import time
import types
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts" / "mutation")]

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from source_mutants import of_python  # noqa: E402

PACKAGE = "opwest.compiler."
MODULES = (
    *(
        f"lowering.{name}"
        for name in "builder control conversions elementwise layers movement passes rows simplify slices".split()
    ),
    *(f"selection.{name}" for name in ("block", "joins")),
    *("ir.movement", "output.placement", "output.manifest"),
)
"""The modules of passes, and of the programs that choices make; the search for a choice is not among them."""
BUILDING = frozenset(f"test_{name}.py" for name in ("max_ram", "stripes", "unused_channels"))
"""Tests of which each TFLite file is a model, with both objectives of an import."""
GRAPHS, PLACED, TURNS, MOST = 300, 40, 16, 300
SECONDS = 120
SURVIVED, NOT_REACHED, UNKNOWN = NOT_CAUGHT = "survived", "not reached", "unknown"


@dataclass(frozen=True)
class Mutant:
    """A function with one changed expression."""

    module: str
    function: str
    line: int
    before: str
    after: str
    code: types.CodeType

    def __str__(self) -> str:
        return f"{self.module}.{self.function}:{self.line}: {self.before} -> {self.after}"


def mutants_of(module: str) -> list[Mutant]:
    """Return all mutants of a module; texts, calls that are left out, and messages have no part in them."""
    live = importlib.import_module(PACKAGE + module)
    content = Path(live.__file__).read_bytes()
    parts = ast.walk(ast.parse(content))
    messages = [range(one.lineno, one.end_lineno + 1) for one in parts if isinstance(one, (ast.Raise, ast.Assert))]
    found = []
    for function, _, _, start, end, after in of_python(content):
        before = content[start:end].decode()
        line = content.count(b"\n", 0, start) + 1
        is_method = isinstance(vars(live).get(function.partition(".")[0]), type)
        name = ".".join(function.split(".")[: 1 + is_method])
        if not function or (is_method and name.count(".") == 0):
            continue  # no part of a function
        if before.lstrip("rb")[0] in "\"'" or after == "None" or any(line in lines for lines in messages):
            continue
        whole = compile(content[:start] + after.encode() + content[end:], live.__file__, "exec")
        before, after = (" ".join(text.split())[:70] for text in (before, after))
        found.append(Mutant(module, name, line, before, after, _code_of(whole, name)))
    return found


def _code_of(code: types.CodeType, name: str) -> types.CodeType:
    for part in name.split("."):
        [code] = [one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == part][-1:]
    return code


def live_function(module: str, name: str):
    """Return the function of the running program."""
    found = importlib.import_module(PACKAGE + module)
    for part in name.split("."):
        found = vars(found)[part]
    for attribute in ("fget", "func", "__wrapped__"):
        found = getattr(found, attribute, found)
    return found


def graphs():
    """Yield random graphs as (outcome, subject), and some of them with constants in a pool."""
    from graphs.campaign import EXACT, Outcome, Subject, drawn_case

    for seed in range(GRAPHS):
        outcome, find_subject = drawn_case(seed)
        subject = find_subject()
        yield outcome, subject
        if outcome.format == "tflite" and seed < PLACED:
            layer = outcome.kinds.index("CONV_2D") if "CONV_2D" in outcome.kinds else 0
            options = {"place": [f"{layer}=fast"], "pools": ["fast=native_sim:sram0"]}
            made = Outcome(GRAPHS + seed, "tflite", outcome.mode, 0, options, EXACT)
            yield made, Subject(subject.content, [], [], True)


class Recorded:
    """The models of the tests that compare operators with runtimes: these tests run, and compile nothing."""

    def __init__(self):
        from models import campaigns, executor, made, onnx_support

        self.models, self.built, self._build, self._test = [], {}, made.Model.build, None
        campaigns.check_configurations = self.record
        onnx_support.check = self.record_onnx
        made.Model.build = lambda model: self.build(model)
        executor.Library.__init__ = self.refuse
        # The outcomes of these tests have no meaning.
        with Path(os.devnull).open("w", encoding="utf-8") as none, contextlib.redirect_stdout(none):
            pytest.main(["-q", "--tier=all", "-p", "no:cacheprovider", str(ROOT / "tests" / "models")], plugins=[self])
        assert {one.format for one, *_ in self.models} == {"tflite", "onnx"} and self.built
        for content, test in self.built.items():
            self.add_built(content, test)

    def pytest_collection_modifyitems(self, items):
        items[:] = [one for one in items if one.path.name in BUILDING or self._compares(one.function)]

    def pytest_runtest_setup(self, item):
        self._test = item

    def build(self, model):
        content = self._build(model)
        if self._test is not None and self._test.path.name in BUILDING:
            self.built[content] = self._test.name
        return content

    def refuse(self, *_):
        raise RuntimeError("nothing is compiled")

    def add_built(self, content, test):
        from graphs.campaign import EXACT, Outcome, Subject, cases_of, litert
        from models.campaigns import graph_of

        cases, expected = [], []
        # Some files are refused, or LiteRT fails for some inputs: the proof alone judges these.
        with contextlib.suppress(AssertionError, RuntimeError, ValueError):
            cases = cases_of(graph_of(content).inputs, len(self.models))
            expected = litert(content, cases)
        for objective in ("speed", "ram"):
            made = Outcome(1000 + len(self.models), "tflite", "", 0, {"optimize": objective}, EXACT)
            self.models.append((made, Subject(content, cases if expected else [], expected, True), test))

    def _compares(self, function):
        """Whether a test calls a function that records, or a function of its modules that does."""
        waiting, seen = [function], set()
        while waiting:
            one = waiting.pop()
            seen.add(one)
            called = [one.__globals__.get(name) for name in names_of(one.__code__)]
            if any(each in (self.record, self.record_onnx) for each in called if callable(each)):
                return True
            waiting += [
                each
                for each in called
                if isinstance(each, types.FunctionType) and _is_of_tests(each) and each not in seen
            ]
        return False

    def record(self, build, folder, seed, count=None, steps=False, cases=None, oracle=None, **_):
        from graphs.campaign import EXACT, Outcome, Subject
        from models import campaigns

        random = np.random.default_rng(seed)
        for content in [build(random).build() for _ in range(min(count or TURNS, TURNS))]:
            given = (cases or campaigns.cases_of)(campaigns.graph_of(content), random)
            sequence = {"steps": True} if steps else {}
            expected = (oracle or campaigns.litert)(content, given, "BUILTIN_REF", **sequence)
            made = Outcome(1000 + len(self.models), "tflite", "", 0, {}, EXACT)
            self.models.append((made, Subject(content, given, expected, True), self._test.name))

    def record_onnx(self, contents, *_, exact=False, **__):
        from graphs.campaign import EXACT, Outcome, Subject
        from models.onnx_support import Made

        for one in contents[:TURNS]:
            content = one.model().SerializeToString() if isinstance(one, Made) else one
            made = Outcome(1000 + len(self.models), "onnx", "", 0, {"exact": exact}, EXACT)
            self.models.append((made, Subject(content, [], [], True), self._test.name))


def _is_of_tests(function):
    return Path(function.__code__.co_filename).is_relative_to(ROOT / "tests" / "models")


def names_of(code):
    """Return the names that code reads, that of functions inside of it included."""
    inner = [names_of(one) for one in code.co_consts if isinstance(one, types.CodeType)]
    return {*code.co_names}.union(*inner)


def corpus(runner, files):
    """Return the models of the right passes: [(outcome, subject, result, lines, test)], lines {(file, line)}."""
    from graphs.campaign import EXACT, REFUSED

    kept = []
    for outcome, subject, test in (*((*one, None) for one in graphs()), *Recorded().models):
        lines = set()

        def by_line(frame, event, _, lines=lines):
            lines.add((frame.f_code.co_filename, frame.f_lineno))
            return by_line

        def watch(frame, event, _, by_line=by_line):
            return by_line if frame.f_code.co_filename in files else None

        sys.settrace(watch)
        try:
            result = runner.judge(copy.deepcopy(outcome), subject)
        finally:
            sys.settrace(None)
        if result.outcome in (EXACT, REFUSED):
            kept.append((outcome, subject, (result.outcome, written(runner)), lines, test))
    return kept


def written(runner):
    """Return a digest of the files of the last import."""
    files = sorted(one for one in (runner.folder / "work" / "out").rglob("*") if one.suffix in (".yaml", ".c", ".npz"))
    return hashlib.sha256(b"".join(one.read_bytes() for one in files)).hexdigest()


def reaching(mutant, models):
    """Return at most MOST models that run the line of a mutant: first one of each test and set of lines of its file."""
    file = mutant.code.co_filename
    groups = collections.defaultdict(list)
    for number, (*_, lines, test) in enumerate(models):
        if (file, mutant.line) in lines:
            groups[test, frozenset(line for at, line in lines if at == file)].append(number)
    rounds = itertools.zip_longest(*groups.values())
    return [number for some in rounds for number in some if number is not None][:MOST]


def judged(mutant, models, numbers, runner):
    """Return how a mutant is caught, in this process, which is given up afterwards."""
    function = live_function(mutant.module, mutant.function)
    function.__code__ = mutant.code.replace(co_firstlineno=function.__code__.co_firstlineno)
    others = 0
    for number in numbers:
        outcome, subject, (right, digest), *_ = models[number]
        found = runner.judge(copy.deepcopy(outcome), subject)
        if found.outcome != right:
            return f"{found.outcome}: {found.detail[:110]}"
        others += digest != written(runner)
    return f"{SURVIVED}: {others} of {len(numbers)} models have other files" if others else f"{SURVIVED}: same files"


def main() -> int:
    """Judge mutants that are chosen at random."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--again", type=Path, help="a file of --json of the same seed: only the mutants that were not caught"
    )
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "mutants.jsonl")
    options = parser.parse_args()
    from graphs.campaign import Runner

    folder = tempfile.mkdtemp(prefix="opwest-mutants-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    runner = Runner(folder, {})
    started = time.monotonic()
    every = [one for module in MODULES for one in mutants_of(module)]
    models = corpus(runner, {one.code.co_filename for one in every})
    functions = {(one.module, one.function) for one in every}
    chosen = [every[i] for i in np.random.default_rng(options.seed).choice(len(every), options.count, replace=False)]
    if options.again:
        rows = map(json.loads, options.again.read_text(encoding="utf-8").splitlines())
        names = {row["mutant"] for row in rows if row["result"].startswith(NOT_CAUGHT)}
        chosen = [one for one in chosen if str(one) in names]
    seconds = time.monotonic() - started
    print(f"{len(every)} mutants of {len(functions)} functions, {len(models)} models, {seconds:.0f} s", flush=True)
    options.json.parent.mkdir(exist_ok=True)
    results, running = [], {}
    with options.json.open("w", encoding="utf-8") as stream:
        waiting = list(enumerate(chosen))
        while waiting or running:
            while waiting and len(running) < options.jobs:
                number, mutant = waiting.pop(0)
                path = Path(folder) / f"result{number}"
                child = os.fork()
                if not child:
                    signal.alarm(SECONDS * 10)
                    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                    runner.folder = Path(folder) / f"child{number}"
                    text = NOT_REACHED
                    numbers = reaching(mutant, models)
                    if numbers:
                        try:
                            text = judged(mutant, models, numbers, runner)
                        except BaseException as error:
                            text = f"{UNKNOWN}: {error!r}"[:150]
                    path.write_text(text)
                    os._exit(0)
                running[child] = mutant, path
            child, _ = os.wait()
            mutant, path = running.pop(child)
            text = path.read_text() if path.exists() else f"{UNKNOWN}: ended by a signal"
            results.append((mutant, text))
            stream.write(json.dumps({"mutant": str(mutant), "result": text}) + "\n")
            stream.flush()
            if text.startswith(NOT_CAUGHT):
                print(f"{text}: {mutant}", flush=True)
    counts = collections.Counter(text.split(":")[0] for _, text in results)
    caught = len(results) - sum(counts[one] for one in NOT_CAUGHT)
    for name, count in counts.most_common():
        print(f"  {name:14} {count}")
    print(f"{caught} of {len(results)} caught: {100 * caught / len(results):.1f} %, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
