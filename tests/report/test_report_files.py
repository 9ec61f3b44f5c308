# SPDX-License-Identifier: Apache-2.0
"""Report files: reading, damaged files, and protection of other files."""

import json
from collections import Counter, defaultdict
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from golden_support import PROJECTS, copy_project
from json_rows import text_of
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.reports import collect, data
from opwest.reports.files import MARKS, decode, is_own, read_report, to_json, write_report
from opwest.reports.page import page, picture, pretty_json
from report_support import HOSTILE, example, hostile, model, report_of

EXPECTED = Path(__file__).parent / "expected"
FULL = "several"
"""The report that is stored completely."""
STORED = sorted(PROJECTS.keys() - {"conventions"}, key=lambda name: (name != FULL, name))
"""Scratch memory, waits, devices and constants of the other one are those of `many_kinds` and `asynchronous`."""
ABSENT = "no member"
"""The member of a brief object that lists the members that it lacks."""
MAPS = (".code", ".stack", ".variants")
"""The objects whose members are names: they have no defaults."""


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
    assert is_own(path, MARKS)
    assert read_report(path) == report


# --- The stored reports: `brief` omits a member of an object if its value is the default, the most frequent value of
# this member in the objects at the same place of the full report. A new member with one value changes no brief report.


def defaults_of(reference):
    """Return the default values of the members of all objects in the reference, by place."""
    seen = defaultdict(lambda: defaultdict(Counter))
    for place, value in objects(reference, ""):
        for key, item in value.items():
            seen[place][key][json.dumps(item, sort_keys=True)] += 1
    return {
        place: {key: json.loads(counts.most_common(1)[0][0]) for key, counts in members.items()}
        for place, members in seen.items()
    }


def brief(value, defaults, place=""):
    """Return `value` without the members that have their default value."""
    if isinstance(value, list):
        return [brief(item, defaults, f"{place}[]") for item in value]
    if not isinstance(value, dict):
        return value
    known = defaults.get(place, {})
    assert ABSENT not in value
    found = {
        key: brief(item, defaults, f"{place}.{key}")
        for key, item in value.items()
        if key not in known or json.dumps(known[key], sort_keys=True) != json.dumps(item, sort_keys=True)
    }
    absent = sorted(known.keys() - value.keys())
    return found | ({ABSENT: absent} if absent else {})


def complete(value, defaults, place=""):
    if isinstance(value, list):
        return [complete(item, defaults, f"{place}[]") for item in value]
    if not isinstance(value, dict):
        return value
    absent = value.get(ABSENT, ())
    own = {key: complete(item, defaults, f"{place}.{key}") for key, item in value.items() if key != ABSENT}
    return {key: item for key, item in defaults.get(place, {}).items() if key not in absent} | own


def objects(value, place):
    if isinstance(value, list):
        for item in value:
            yield from objects(item, f"{place}[]")
    elif isinstance(value, dict) and not place.endswith(MAPS):
        yield place, value
        for key, item in value.items():
            yield from objects(item, f"{place}.{key}")


def stored(name: str) -> Any:
    """Return a stored report: complete, or without the members that the complete one determines."""
    value = json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))
    return value if name == FULL else complete(value, defaults_of(stored(FULL)))


@pytest.mark.parametrize("name", STORED)
def test_golden_json(name, tmp_path, request) -> None:
    """Checksums are recomputed, not stored. `make golden` stores the reports."""
    faults = Diagnostics()
    manifests = copy_project(name, tmp_path / "source")
    made = collect.report_of(collect.read_inputs(manifests, faults), [], faults)
    value = json.loads(pretty_json(data.Report("VERSION", made.models, made.stale), None))
    for described, manifest in zip(value["models"], manifests, strict=True):
        for row in described["inputs"]:
            assert row["sha256"] == sha256((manifest.parent / row["name"]).read_bytes()).hexdigest(), row["name"]
            row["sha256"] = "SHA256"
    if request.config.getoption("--rewrite"):
        shown = value if name == FULL else brief(value, defaults_of(stored(FULL)))
        EXPECTED.mkdir(exist_ok=True)
        (EXPECTED / f"{name}.json").write_text(text_of(shown), encoding="utf-8")
    assert value == stored(name), f"the report of {name} differs; if that is meant: make golden"


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
    for place in (path, tmp_path):
        with pytest.raises(OpwestError) as caught:
            write_report(place, page(report_of()))
        assert str(caught.value) == (
            f"{place}: error: the file exists and is not a report\n"
            "  hint: choose another file: only reports of 'opwest report' are overwritten"
        )
    with pytest.raises(OpwestError, match=r"cannot write the report: (Not a directory|File exists)"):
        write_report(path / "report.html", "")
    assert path.read_text() == "<html>mine</html>"


def test_symbolic_link_is_preserved(tmp_path) -> None:
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    write_report(target, page(report_of()))
    link.symlink_to(target)
    write_report(link, page(example()))
    assert link.is_symlink() and read_report(target) == example()


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
    value = json.loads(json.dumps(asdict(example())))

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
    assert HOSTILE in report.opwest


@pytest.mark.parametrize(("number", "seen"), [("NaN", "nan"), ("1e999", "inf"), ("9" * 400, f"{'9' * 20}…")])
def test_impossible_measurements(tmp_path, number, seen) -> None:
    results = data.Results("r", None, None, (), (data.OutputError("y", 1, 1, 2.5, 0.5),))
    path = tmp_path / "before.json"
    path.write_text(to_json(report_of(replace(model([], []), results=(results,)))).replace("2.5", number))
    reason = f"models[0].results[0].errors[0].largest is {seen}, expected a finite number"
    assert message(path).startswith(f"{path}: error: cannot read the report for --compare: {reason}\n")
