# SPDX-License-Identifier: Apache-2.0
"""The table of the matrix: from records of images, and in the page."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

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
