# SPDX-License-Identifier: Apache-2.0
"""Which configurations of each Zephyr test run in CI: a pairwise cover of boards, back ends, conventions, and versions.

A test declares all configurations that it supports, with @configured. A campaign (`make boards`) runs them all. Other
runs choose at least one of each test, so that each pair of values that some test supports occurs in some test:
`python tests/zephyr/cover.py` prints the pairs and the tests. Among equal configurations the first one is chosen.
"""

import functools
import importlib
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

HERE = Path(__file__).resolve().parent
for folder in (HERE.parent, HERE):  # for this file as a program
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from campaign import sized  # noqa: E402
from opwest.model.types import conventions  # noqa: E402

DIMENSIONS = ("board", "back_end", "convention", "version")
CONVENTIONS: tuple[str, ...] = tuple(one.name for one in conventions.CONVENTIONS)
MAIN = "4.2"
"""The version of Zephyr that tests use unless they declare another one."""
VERSIONS = ("3.4", "4.1", MAIN)
"""The versions of CI. Others run where a campaign finds their workspaces."""
DEFAULTS: Mapping[str, object] = {"back_end": "c", "convention": "unpacked", "version": MAIN}
NAMES = {"models": "board"}
"""Parameters of tests with other names than their dimension: a fixture of a board."""
COST = 3
"""The cost of most tests; the images of the matrix cost less."""
Value = tuple[str, str]
Pair = tuple[Value, Value]
_Test = TypeVar("_Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declaration:
    """The configurations of a test: values of its parameters, and what is the same in all of them."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    same: Mapping[str, object]
    cost: int
    indirect: bool

    def values(self, row: Sequence[Any]) -> dict[str, tuple[str, ...]]:
        """Return the values of each dimension; an image with all conventions has several of one dimension."""
        found = {**DEFAULTS, **self.same}
        found |= {NAMES.get(name, name): value for name, value in zip(self.names, row, strict=True)}
        return {name: _tuple(found[name]) for name in DIMENSIONS if name in found}

    def pairs(self, row: Sequence[Any]) -> frozenset[Pair]:
        """Return the pairs of a configuration; none if the test has no board."""
        values = self.values(row)
        if "board" not in values:
            return frozenset()
        return frozenset(
            ((one, a), (other, b))
            for one, other in itertools.combinations(DIMENSIONS, 2)
            for a, b in itertools.product(values[one], values[other])
        )

    @property
    def in_ci(self) -> list[tuple[Any, ...]]:
        """The configurations with versions of CI; all, if there is no such version."""
        found = [row for row in self.rows if set(self.values(row)["version"]) <= set(VERSIONS)]
        return found or list(self.rows)


def configured(
    names: str = "", rows: Iterable[Any] = ((),), /, *, cost: int = COST, indirect: bool = False, **same: object
) -> Callable[[_Test], _Test]:
    """Declare the configurations of a test: parameters and their values, as for pytest.mark.parametrize.

    `same` has the dimensions that are no parameters; a tuple contains several values in one test. A dimension without a
    declaration has the value in DEFAULTS; a test without a board has no pairs. `cost` weighs tests, if a pair remains;
    with more than COST, CI takes the first configuration, whatever its pairs are.
    """
    split = tuple(name.strip() for name in names.split(",") if name.strip())
    listed = tuple((row,) if len(split) == 1 else tuple(row) for row in rows)
    assert listed and set(same) <= set(DIMENSIONS), (names, same)

    def decorate(function: _Test) -> _Test:
        function.configurations = Declaration(split, listed, same, cost, indirect)  # type: ignore[attr-defined]
        return function

    return decorate


@functools.cache
def modules() -> list[ModuleType]:
    """Return the test files of this directory, but for those that lack a requirement."""
    found = []
    for path in sorted(HERE.glob("test_*.py")):
        try:
            found.append(importlib.import_module(path.stem))
        except BaseException as outcome:  # of need() in a module: a subclass of BaseException
            if type(outcome).__name__ not in ("Skipped", "Failed"):
                raise
    return found


@functools.cache
def declarations() -> dict[str, Declaration]:
    """Return the declarations of all tests of this directory, by module and function."""
    found = {}
    for module in modules():
        for name, value in vars(module).items():
            declared = getattr(value, "configurations", None)
            if declared is not None and name.startswith("test_") and value.__module__ == module.__name__:
                found[f"{module.__name__}.{name}"] = declared
    return found


def cover(declared: Mapping[str, Declaration]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the chosen configurations of each test: one of each, then the cheapest of any test for what remains."""
    chosen: dict[str, list[tuple[Any, ...]]] = {}
    covered: set[Pair] = set()
    # Those without a choice are first.
    choices = {name: one.in_ci if one.cost <= COST else one.in_ci[:1] for name, one in declared.items()}
    for name in sorted(declared, key=lambda name: (len(choices[name]), name)):
        one = declared[name]
        row = max(choices[name], key=lambda row: len(one.pairs(row) - covered))  # the first one of equals
        chosen[name] = [row]
        covered |= one.pairs(row)
    uses: Counter[Pair] = Counter()
    while missing := possible(declared) - covered:
        gains = (
            (len(pairs & missing) / one.cost, -sum(uses[pair] for pair in pairs), name, row, pairs)
            for name, one in sorted(declared.items())
            for row, pairs in ((row, one.pairs(row)) for row in one.in_ci)
        )
        # Of equal gains, the values that were chosen less often before.
        _, _, name, row, pairs = max(gains, key=lambda gain: gain[:2])
        chosen[name].append(row)
        covered |= pairs
        uses.update(pairs)
    for name, row in [(name, row) for name, rows in sorted(chosen.items()) for row in rows]:
        others = [declared[n].pairs(r) for n, rows in chosen.items() for r in rows if (n, r) != (name, row)]
        spare = len(chosen[name]) > 1 and declared[name].cost <= COST
        if spare and declared[name].pairs(row) <= frozenset().union(*others):
            chosen[name].remove(row)  # later choices have its pairs, too
    return {name: sorted(dict.fromkeys(rows), key=declared[name].rows.index) for name, rows in chosen.items()}


def possible(declared: Mapping[str, Declaration]) -> frozenset[Pair]:
    """Return the pairs that tests support with the versions of CI."""
    return frozenset().union(*(one.pairs(row) for one in declared.values() for row in one.in_ci))


@functools.cache
def chosen() -> dict[str, list[tuple[Any, ...]]]:
    """Return the configurations of each test in a run of this size."""
    declared = declarations()
    return sized(cover(declared), {name: list(one.rows) for name, one in declared.items()})


def shown(pair: Pair) -> str:
    """Return a pair as text."""
    return ", ".join(f"{name} {value}" for name, value in pair)


def table(declared: Mapping[str, Declaration], rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> list[str]:
    """Return the lines of a table of all pairs with the tests that cover them, then that of the tests."""
    tests: dict[Pair, list[str]] = {pair: [] for pair in sorted(possible(declared))}
    for name in sorted(rows):
        for pair in sorted(set().union(*(declared[name].pairs(row) for row in rows[name]))):
            tests.setdefault(pair, []).append(name.replace("_on_zephyr.test_", "::").removeprefix("test_"))
    lines = []
    for pair, names in tests.items():
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        lines.append(f"{shown(pair):<70} {', '.join(names[:2]) or 'NONE'}{more}")
    lines.append("")
    for name in sorted(rows):
        one = declared[name]
        lines.append(f"{name}: {len(rows[name])} of {len(one.rows)} configurations")
        for row in rows[name]:
            lines.append("    " + ", ".join("+".join(values) for values in one.values(row).values()))
    covered = sum(bool(names) for names in tests.values())
    items = sum(map(len, rows.values()))
    lines += ["", f"{covered} of {len(tests)} pairs, in {items} configurations of {len(rows)} tests"]
    return lines


def _tuple(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, (tuple, list)) else (str(value),)


if __name__ == "__main__":
    from cover import chosen as rows_of_all  # the module that the tests import
    from cover import declarations as of_all

    print("\n".join(table(of_all(), rows_of_all())))
