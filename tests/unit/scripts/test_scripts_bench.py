# SPDX-License-Identifier: Apache-2.0
"""The collection of the benchmarks' figures, with made-up scripts, and the check of coverage."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location("bench_main", ROOT / "benchmarks" / "__main__.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = """\
import sys
sys.path.insert(0, {benchmarks!r})
sys.argv[0] = "made_up.py"
from pathlib import Path
from common import Report
ROW = ["10", 1.5, 2.0, 340, 88]
if __name__ == "__main__":
    report = Report("Made up")
    report.table("Steps.", ["steps", "CPU s", "a / b", "bytes of run", "run"], [ROW], "instructions")
    report.limit("run", 88, {most})
    report.skip("the rest", "there is no tool")
    sys.exit(report.finish(Path(sys.argv[2])))
"""


def test_figures_of_a_script(bench: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "made_up.py"
    script.write_text(SCRIPT.format(benchmarks=str(ROOT / "benchmarks"), most=90))
    rows, well = bench.measure("made_up", script, tmp_path)
    assert well
    assert [(row["name"], row["value"], row["unit"], row["note"]) for row in rows] == [
        ("10 steps: CPU s", 1.5, "s", "Steps."),
        ("10 steps: a / b", 2.0, "", "Steps."),
        ("10 steps: bytes of run", 340, "bytes", "Steps."),
        ("10 steps: run", 88, "instructions", "Steps."),
        ("run", 88, "", "met: at most 90"),
        ("skipped", None, "", "the rest: there is no tool"),
    ]
    assert {row["command"] for row in rows} == {f"python {tmp_path.name}/made_up.py"}
    table = bench.markdown(rows, "this machine")
    assert "| made_up | 10 steps: CPU s | 1.500 | s | Steps. |\n" in table
    assert "| made_up | skipped | - |  | the rest: there is no tool |\n" in table


def test_unmet_limit(bench: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "made_up.py"
    script.write_text(SCRIPT.format(benchmarks=str(ROOT / "benchmarks"), most=80))
    rows, well = bench.measure("made_up", script, tmp_path)
    assert not well and rows[4]["note"] == "NOT MET: at most 80"


@pytest.mark.parametrize(
    ("text", "well", "reason"),
    [
        (None, True, "no such script"),
        ("raise SystemExit(3)", False, "the script failed with exit code 3: see its output"),
        ("import time; time.sleep(60)", False, "timeout after 0.5 s"),
    ],
)
def test_scripts_without_measurements(
    bench: ModuleType, tmp_path: Path, text: str | None, well: bool, reason: str
) -> None:
    script = tmp_path / "planner.py"
    if text is not None:
        script.write_text(text)
    [row], ended = bench.measure("planner", script, tmp_path, seconds=0.5 if text and "sleep" in text else 60)
    assert (ended, row["name"], row["value"], row["note"]) == (well, "not measured", None, reason)


def test_every_script_is_a_benchmark_or_known_to_be_absent(bench: ModuleType) -> None:
    found = dict(bench.scripts(ROOT / "benchmarks", []))
    assert {"generation", "registry_lookup", "run_overhead", "metadata_size", "planner"} <= set(found)
    assert "common" not in found
    assert list(dict(bench.scripts(ROOT / "benchmarks", ["run_overhead"]))) == ["run_overhead"]
