# SPDX-License-Identifier: Apache-2.0
"""The scripts of several versions of Python, hosts and benchmarks."""

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

# --- The table of the matrix: from records of images, and in the page

ROOT = Path(__file__).resolve().parents[3]
Capture = pytest.CaptureFixture[str]


def record(back_end: str, version: str = "4.2", board: str = "b", options: str = "", **more: object) -> dict:
    return {"version": version, "board": board, "options": options, "back_end": back_end, **more}


RECORDS = [
    record("llvm", "4.10", cells={"packed": "ok", "ffi": "2 of 3 cases equal"}),
    record("c", "4.10", cells={"packed": "ok", "ffi": "ok"}),
    record("c", "4.2", skipped="no tree"),
    record("llvm", "4.2", skipped="no tree"),
    record("c", "4.2", options="-DCONFIG_FPU=y", cells={"packed": "ok", "ffi": "ok"}),
    record("llvm", "4.2", options="-DCONFIG_FPU=y", failed="AssertionError"),
]


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import host_matrix

    return host_matrix


def test_rows(matrix: ModuleType) -> None:
    assert matrix.table(RECORDS) == [
        ["Zephyr", "board", "packed", "ffi"],
        ["4.2", "b", "not run: no tree", "not run: no tree"],
        ["4.2", "b, FPU", "c, llvm: FAILED: AssertionError", "c, llvm: FAILED: AssertionError"],
        ["4.10", "b", "c, llvm", "c, llvm: 2 of 3 cases equal"],
    ]


def test_markdown_has_a_common_reason_once(matrix: ModuleType) -> None:
    lines = matrix.markdown(matrix.table(RECORDS)).splitlines()
    assert lines[:3] == ["| Zephyr | board | packed | ffi |", "|---|---|---|---|", "| 4.2 | b | not run: no tree |  |"]


def test_main_fails_for_a_failed_image(
    matrix: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "matrix"
    monkeypatch.setattr(matrix, "RECORDS", folder)
    monkeypatch.setattr(matrix, "TABLE", tmp_path / "matrix.txt")
    assert matrix.main([]) == 1
    assert capsys.readouterr().err == f"{folder}: error: no records\n  expected: those of `make matrix`\n"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(RECORDS[1]))
    assert matrix.main([]) == 0
    assert capsys.readouterr().out == "Zephyr  board  packed  ffi\n4.10    b      c       c\n"
    assert (tmp_path / "matrix.txt").read_text() == "Zephyr  board  packed  ffi\n4.10    b      c       c\n"
    (folder / "b.json").write_text(json.dumps(RECORDS[0]))
    assert matrix.main([]) == 1


def test_the_page_has_the_stored_records(matrix: ModuleType) -> None:
    text = matrix.PAGE.read_text(encoding="utf-8")
    stored = json.loads(matrix.STORED.read_text(encoding="utf-8"))
    assert matrix.page(text, stored) == text, "run: python scripts/host_matrix.py --write"
    assert not [one for one in stored if "failed" in one]
    with pytest.raises(
        matrix.RecordError, match=r"^supported-hosts.md: error: no table\n  expected: the lines '<!-- matr"
    ):
        matrix.page("no markers", stored)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "error: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "error: no record of an image\n  expected: version, board, options, back_end"),
        ('{"version": "main", "board": "b", "options": "", "back_end": "c"}', "error: no record of an image"),
    ],
)
def test_invalid_records(
    matrix: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture, content: str, message: str
) -> None:
    monkeypatch.setattr(matrix, "RECORDS", tmp_path)
    monkeypatch.setattr(matrix, "TABLE", tmp_path / "matrix.txt")
    (tmp_path / "a.json").write_text(content)
    assert matrix.main([]) == 1
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'a.json'}: {message}")
    for name, path in {"ROOT": tmp_path, "STORED": tmp_path / "none.json", "PAGE": tmp_path / "page.md"}.items():
        monkeypatch.setattr(matrix, name, path)
    assert matrix.main(["--write"]) == 1
    assert "none.json: error: [Errno 2] No such file" in capsys.readouterr().err


# --- scripts/pythons.py: the choice of interpreters, and environments that cannot be made


@pytest.fixture
def pythons(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import pythons

    return pythons


def test_the_newest_interpreter_of_pyenv_is_chosen(
    pythons: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for patch in ("3.12.9", "3.12.10"):
        program = tmp_path / ".pyenv" / "versions" / patch / "bin" / "python3.12"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert pythons.find_python("3.12") == str(program)
    assert pythons.find_python("9.9") is None


def test_path_of_the_first_version_with_an_interpreter(
    pythons: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pythons, "find_python", {"3.11": "/b/python3.11", "3.12": "/a/python3.12"}.get)
    monkeypatch.setattr("sys.argv", ["pythons.py", "--path", "--versions", "3.13", "3.12", "3.11"])
    assert (pythons.main(), capsys.readouterr().out) == (0, "/a/python3.12\n")
    monkeypatch.setattr("sys.argv", ["pythons.py", "--path", "--versions", "3.14", "3.13"])
    assert pythons.main() == 1
    assert capsys.readouterr() == ("", "error: no Python 3.14, 3.13 in PATH or ~/.pyenv/versions\n")


def test_environment_that_fails_is_reported(
    pythons: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(version: str, interpreter: str) -> Path:
        raise subprocess.CalledProcessError(7, ["uv", version, interpreter], stderr="uv: no network")

    monkeypatch.setattr(pythons, "environment", fails)
    monkeypatch.setattr(pythons, "find_python", lambda version: None if version == "9.9" else "python3")
    monkeypatch.setattr("sys.argv", ["pythons.py", "--versions", "3.12", "9.9"])
    assert pythons.main() == 1
    assert capsys.readouterr().out == (
        "== Python 9.9: SKIPPED, no interpreter in PATH or ~/.pyenv/versions\n"
        "== Python 3.12: no environment, exit code 7 of uv\nuv: no network\n"
    )


# --- The collection of the benchmarks' figures, with made-up scripts, and the check of coverage


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
