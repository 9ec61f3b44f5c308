# SPDX-License-Identifier: Apache-2.0
"""Report files: reading, damaged files, and protection of other files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from golden_support import PROJECTS, copy_project
from opwest.diagnostics import OpwestError
from opwest.report import data
from opwest.report.codec import decode, encode
from opwest.report.files import is_report, read_report, to_json, write_report
from opwest.report.page import page, pretty_json
from opwest.report.picture import picture
from report_support import HOSTILE, example, hostile, model, report_of

EXPECTED = Path(__file__).parent / "expected"


@pytest.fixture(scope="module")
def report() -> data.Report:
    return hostile(example())


def message(path: Path) -> str:
    with pytest.raises(OpwestError) as caught:
        read_report(path)
    return str(caught.value)


@pytest.mark.parametrize("render", [page, picture, lambda report: pretty_json(report, ())], ids=["html", "svg", "json"])
def test_every_format_is_read_again(report, render, tmp_path) -> None:
    path = tmp_path / "report"
    write_report(path, render(report))
    assert is_report(path)
    assert read_report(path) == report


@pytest.mark.parametrize("name", PROJECTS)
def test_golden_json(name, tmp_path, request) -> None:
    from opwest.diagnostics import Diagnostics
    from opwest.report.make import read_inputs, report_of

    faults = Diagnostics()
    made = report_of(read_inputs(copy_project(name, tmp_path / "source"), faults), [], faults)
    text = pretty_json(data.Report("VERSION", made.models, made.stale), None)
    place = EXPECTED / f"{name}.json"
    if request.config.getoption("--rewrite"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    assert json.loads(text) == json.loads(place.read_text(encoding="utf-8"))


def test_earlier_report_is_overwritten(tmp_path) -> None:
    path = tmp_path / "new" / "report.html"
    write_report(path, page(report_of()))
    path.chmod(0o640)
    write_report(path, page(example()))
    assert read_report(path) == example()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def test_other_files_are_not_overwritten(tmp_path) -> None:
    path = tmp_path / "thesis.html"
    path.write_text("<html>mine</html>")
    with pytest.raises(OpwestError) as caught:
        write_report(path, page(report_of()))
    assert str(caught.value) == (
        f"{path}: error: the file exists and is not a report\n"
        "  hint: choose another file: only reports of 'opwest report' are overwritten"
    )
    assert path.read_text() == "<html>mine</html>"
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OpwestError, match="the file exists and is not a report"):
        write_report(folder, "")


def test_symbolic_link_is_preserved(tmp_path) -> None:
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    write_report(target, page(report_of()))
    link.symlink_to(target)
    write_report(link, page(example()))
    assert link.is_symlink() and read_report(target) == example()


def test_file_in_place_of_a_directory(tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OpwestError, match=r"cannot write the report: (Not a directory|File exists)"):
        write_report(tmp_path / "file" / "report.html", "")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.not_root
def test_unwritable_directory(tmp_path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OpwestError, match="cannot write the report: Permission denied"):
        write_report(tmp_path / "report.html", "")


def test_damaged_reports_are_rejected(tmp_path) -> None:
    path = tmp_path / "old.json"
    good = json.loads(pretty_json(example(), None))
    assert "No such file or directory" in message(path)
    for content, reason in (
        ("", "no report found (Expecting value"),
        ("<html></html>", "no report found"),
        ("[1]", "no report found"),
        (json.dumps({**good, "format": "else"}), "no report found"),
        (json.dumps({**good, "schema": 99}), "schema 99, expected 1"),
        (json.dumps({**good, "models": 3}), "models is not a list"),
        (json.dumps({**good, "models": [{}]}), "missing 'models[0].name'"),
        (json.dumps({**good, "opwest": None}), "opwest is None, expected text"),
        ("[" * 100_000, "no report found"),
    ):
        path.write_text(content)
        text = message(path)
        assert reason in text or "recursion" in text
        assert "expected: a report written by 'opwest report': HTML, SVG or JSON" in text


def test_every_field_of_a_report_is_checked(report) -> None:
    value = json.loads(json.dumps(encode(example())))

    def spoil(part):
        for key in list(part) if isinstance(part, dict) else range(min(len(part), 1)):
            old = part[key]
            part[key] = -1 if isinstance(old, dict) else {"no": "such"}
            with pytest.raises(ValueError, match=r".+ is "):
                decode(data.Report, value)
            part[key] = old
            if isinstance(old, dict | list):
                spoil(old)

    spoil(value)
    assert decode(data.Report, value) == example()
    assert HOSTILE in encode(report)["opwest"]


@pytest.mark.parametrize(("number", "seen"), [("NaN", "nan"), ("1e999", "inf"), ("9" * 400, f"{'9' * 20}…")])
def test_impossible_measurements(tmp_path, number, seen) -> None:
    made = replace(
        model([], []), results=(data.Results("r", None, None, (), (data.OutputError("y", 1, 1, 2.5, 0.5),)),)
    )
    path = tmp_path / "before.json"
    path.write_text(to_json(report_of(made)).replace("2.5", number))
    with pytest.raises(OpwestError) as caught:
        read_report(path)
    assert caught.value.diagnostics[0].message == (
        "cannot read the report for --compare: "
        f"models[0].results[0].errors[0].largest is {seen}, expected a finite number"
    )
