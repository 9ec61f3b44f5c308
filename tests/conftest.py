# SPDX-License-Identifier: Apache-2.0
"""The tiers of the tests, and the table of skipped tests.

`--tier=host` (`make test`) omits the directories of REST, tests marked `slow`, and tests that call `need()` for more
than requirements_support.HOST. It records each test that passed. `--tier=rest` (`make test-rest`) runs all others.
Tests marked `whole` run in campaigns only (campaign.py); Zephyr tests run with a part of their configurations in
other runs (zephyr/cover.py).
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign import sized
from child_calls import use_processes
from output_schemas import use_output_schemas
from requirements_support import LEFT, Tier, need, need_x86_64, skip_here
from session_support import begin_session, end_session, first_alone

TESTS = Path(__file__).resolve().parent
REST = (
    *("accelerators", "compile", "conformance", "docs", "examples", "fuzz", "graphs", "importers", "kernels", "llvm"),
    *("models", "npu_model", "proof", "pytorch", "release", "zephyr"),
)
"""Directories that only `make test-rest` runs."""
FIRST = (TESTS / "zephyr", *(TESTS / "unit" / "board" / f"test_{name}_links.py" for name in ("board", "bundle")))
"""Directories and files with long tests: builds of images, so that no process waits for the last one, and time-outs,
during which mypy runs."""
RESULTS = TESTS.parent / "build" / "tests"
PASSED = RESULTS / "passed.txt"
"""The tests that the last `make test` passed."""
WITH_CHILDREN = (
    *("test_llvm_child.py", "test_llvm_compile.py", "test_llvm_read.py"),  # LLVM runs in a child process
    *("test_run_board_on_zephyr.py", "test_profile_on_zephyr.py"),
    "llvm",
)
"""Files and directories whose child processes contribute to the coverage. It doubles their start-up, and the tests of
other files and directories run commands that are tested in the process too."""
_COVERAGE = "COVERAGE_PROCESS_CONFIG"
"""The variable by which coverage.py starts in a child process."""
_coverage = os.environ.get(_COVERAGE)
_passed: list[str] = []
_seconds: Counter[str] = Counter()


# opwest synchronises each written file with the disk. A test in this process cannot lose power, and tests that write
# projects would wait for the disk for longer than they compute.
os.fsync = lambda fd: None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the expected outputs instead of comparing with them")
    parser.addoption(
        "--tier",
        choices=("host", "rest", "all"),
        default="all",
        help="host: the tests of `make test`; rest: all that the last `make test` did not pass (default: all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    Tier.name = config.getoption("--tier")
    use_output_schemas()
    if not hasattr(config, "workerinput"):
        begin_session()
        if Tier.name == "host":
            PASSED.unlink(missing_ok=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        end_session()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """In a new clone, one process compiles the modules of the tests; the others wait, and read what it has compiled."""
    if not hasattr(session.config, "workerinput"):
        return (yield)
    with first_alone(RESULTS / f"collected_{Tier.name}"):
        return (yield)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Omit the directories of REST before their modules are imported."""
    return True if Tier.name == "host" and collection_path in [TESTS / name for name in REST] else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier; those of FIRST are first."""
    items.sort(key=lambda item: not any(item.path.is_relative_to(place) for place in FIRST))
    out = [] if sized(False, True) else [item for item in items if item.get_closest_marker("whole")]
    if Tier.name == "host":
        out += [item for item in items if item.get_closest_marker("slow")]
    elif Tier.name == "rest":
        passed = frozenset(PASSED.read_text(encoding="utf-8").splitlines()) if PASSED.is_file() else frozenset()
        out += [item for item in items if _line(item.nodeid) in passed]
    left = frozenset(out)
    if not left:
        return
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=out)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the requirements in the marks of a test."""
    _measure_children(item.path.name in WITH_CHILDREN or item.path.parent.name in WITH_CHILDREN)
    use_processes(item)
    for mark in item.iter_markers("needs"):
        need(*mark.args)
    if item.get_closest_marker("x86_64"):
        need_x86_64()
    if item.get_closest_marker("not_root") and hasattr(os, "geteuid") and os.geteuid() == 0:
        skip_here("root may write everywhere")


@pytest.fixture(autouse=True)
def no_internal_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that opwest does not handle fails the test that calls main()."""

    def fail(error: Exception, options: object) -> None:
        raise error

    monkeypatch.setattr("opwest.cli.main.unexpected", fail)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Count the tests that need more than this tier uses as deselected: a skip means that something is missing."""
    left = report.skipped and isinstance(report.longrepr, tuple) and LEFT in report.longrepr[2]
    return ("deselected", "", "") if left else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the time of a test, and that it passed; with pytest-xdist, in the controller process."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    _seconds[_line(report.nodeid)] += report.duration
    if Tier.name == "host" and report.when == "call" and report.passed:
        _passed.append(_line(report.nodeid))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the times of the tests (scripts/test_times.py), and the list of passed tests."""
    if hasattr(session.config, "workerinput") or Tier.name == "all":
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    times = "".join(f"{seconds:.3f} {test}\n" for test, seconds in _seconds.most_common())
    (RESULTS / f"times_{Tier.name}.txt").write_text(times, encoding="utf-8")
    if Tier.name == "host":
        PASSED.write_text("".join(f"{line}\n" for line in _passed), encoding="utf-8")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the pairs of Zephyr tests, and one line for each reason of skips, with the number of tests."""
    _pairs_of_zephyr_tests(terminalreporter)
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("skipped")
        for reason, count in sorted(reasons.items(), key=lambda row: (-row[1], row[0])):
            terminalreporter.line(f"{count:>5}  {' '.join(reason.split())}")


def _pairs_of_zephyr_tests(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many pairs of configurations passed; tests/zephyr/cover.py describes them."""
    found, possible = set(), 0
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "pairs":
                found |= set(value[0])
                possible = value[1]
    if possible:
        terminalreporter.section("Zephyr")
        terminalreporter.line(f"{len(found)} of {possible} pairs of configurations passed (tests/zephyr/cover.py)")


def _measure_children(measured: bool) -> None:
    if _coverage is not None and measured:
        os.environ[_COVERAGE] = _coverage
    else:
        os.environ.pop(_COVERAGE, None)


def _line(nodeid: str) -> str:
    return " ".join(nodeid.splitlines())


@pytest.fixture(scope="module", params=["c", "llvm"])
def metadata(request: pytest.FixtureRequest) -> str:
    """The back end: tests that use this fixture run with each.

    With the scope of a session, pytest would order all tests by it, and create the fixtures of each module twice.
    """
    if request.param == "llvm":
        need("llvmlite")
    return request.param
