# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that records which tests reach the probes of a tree, and the time and outcome of each test.

The contexts are the tests, and the fixtures and shared results that several tests use. The plugin uses nothing of the
tests, so that it works with those of an older commit. OPWEST_REACH is the directory of its output.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opwest import hits

_FOLDER = Path(os.environ["OPWEST_REACH"])


class _Record:
    """What this process found: the contexts that tests share, and the results of tests."""

    def __init__(self) -> None:
        self.current = ""
        self.shared: dict[str, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        """The processor time of tests and of what they share, with child processes: other load does not change it."""
        self.outcomes: dict[str, str] = {}
        self._shared_seconds = 0.0
        """The time of what was shared within the current context."""

    def enter(self, context: str) -> str:
        """Attribute what follows to a context; return the one before."""
        self.current = context
        return hits.enter(context)

    @contextlib.contextmanager
    def within(self, context: str) -> Iterator[None]:
        """Attribute a part to what the current context and others share."""
        self.shared[self.current].add(context)
        before, shared_before = self.enter(context), self._shared_seconds
        started = _processor_seconds()
        self._shared_seconds = 0.0
        try:
            yield
        finally:
            self._shared_seconds = shared_before + self._take(context, started)
            self.enter(before)

    @contextlib.contextmanager
    def test(self, name: str) -> Iterator[None]:
        """Attribute a part to a test."""
        self.enter(name)
        started = _processor_seconds()
        self._shared_seconds = 0.0
        try:
            yield
        finally:
            self._take(name, started)
            self.enter("")

    def _take(self, context: str, started: float) -> float:
        """Record the time of a context without what it shares, the longest of several; return the time with it."""
        seconds = _processor_seconds() - started
        self.seconds[context] = max(self.seconds.get(context, 0.0), seconds - self._shared_seconds)
        return seconds


def _processor_seconds() -> float:
    return sum(os.times()[:4])


_record = _Record()


def pytest_configure(config: pytest.Config) -> None:
    """Share the context of results that are made once in a session."""
    with contextlib.suppress(ImportError):
        import session_support

        made_once = session_support.made_once

        def recorded(key: str, make: Callable[[Path], None]) -> Path:
            context = f"shared:{key}"
            _record.shared[_record.current].add(context)

            def make_in_context(folder: Path) -> None:
                with _record.within(context):
                    make(folder)

            return made_once(key, make_in_context)

        session_support.made_once = recorded


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Attribute a test to its context, with empty caches: a cached result reaches no probe."""
    _clear_caches()
    with _record.test(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    """Attribute a fixture of several tests to a context of its own."""
    if fixturedef.scope == "function":
        return (yield)
    with _record.within(f"fixture:{fixturedef.baseid}:{fixturedef.argname}"):
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Record the shared fixtures of each test."""
    for item in items:
        definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        for fixtures in definitions.values():
            for one in fixtures:
                if one.scope != "function":
                    _record.shared[item.nodeid].add(f"fixture:{one.baseid}:{one.argname}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the result of a test."""
    if report.when == "call" or report.outcome != "passed":
        _record.outcomes[report.nodeid] = report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the records of this process; the process that distributes the tests runs none."""
    if not _record.outcomes or (not hasattr(session.config, "workerinput") and session.config.getoption("-n", None)):
        return
    found = {
        "shared": {name: sorted(values) for name, values in _record.shared.items()},
        "seconds": _record.seconds,
        "outcomes": _record.outcomes,
    }
    (_FOLDER / f"reach-{os.getpid()}.json").write_text(json.dumps(found), encoding="utf-8")


_wrapper = type(functools.lru_cache(lambda: None))
_known: dict[int, list[Any]] = {}


def _clear_caches() -> None:
    count = len(sys.modules)
    if count not in _known:
        _known.clear()
        _known[count] = [
            one
            for one in gc.get_objects()
            if isinstance(one, _wrapper) and str(getattr(one, "__module__", "")).startswith("opwest")
        ]
    for one in _known[count]:
        one.cache_clear()
