# SPDX-License-Identifier: Apache-2.0
"""`opwest report`: projects and manifests, formats, comparison, error messages."""

import json
import shutil
from pathlib import Path

import pytest
from golden_support import GOLDEN, copy_project
from opwest.report.files import read_report


@pytest.fixture
def project(opwest, tmp_path):
    """A generated project and its manifest."""
    (manifest,) = copy_project("minimal", tmp_path / "source")
    assert opwest("generate", manifest, "-o", tmp_path / "app").code == 0
    return tmp_path / "app"


def manifest_of(project: Path) -> Path:
    return project.parent / "source" / "manifest.yaml"


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_report_of_a_project_is_a_page(opwest, project):
    page = project.parent / "report.html"
    done = opwest("report", project, "-o", page)
    assert (done.code, done.err) == (0, "")
    name = read_report(page).models[0].name
    assert done.out.splitlines()[0] == f"{page}: {name}"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    before = page.read_bytes()
    assert opwest("report", project, "-o", page).code == 0
    assert page.read_bytes() == before


def test_report_of_a_manifest_equals_that_of_its_project(opwest, project):
    for source, name in ((project, "one.json"), (manifest_of(project), "two.json")):
        assert opwest("report", source, "-o", project.parent / name).code == 0
    assert (project.parent / "one.json").read_bytes() == (project.parent / "two.json").read_bytes()


def test_several_manifests_are_one_report(opwest, tmp_path):
    manifests = copy_project("several", tmp_path / "source")
    done = opwest("report", *manifests, "-o", tmp_path / "r.html", "--json")
    assert done.code == 0
    result = json.loads(done.out)["result"]
    assert len(result["models"]) == 2
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert all(f">{name}</a>" in text for name in result["models"])


@pytest.mark.parametrize(
    ("name", "options", "start"),
    [
        ("r.html", (), "<!DOCTYPE html>"),
        ("r.svg", (), "<svg "),
        ("r.json", (), "{"),
        ("r.txt", (), "<!DOCTYPE html>"),
        ("r.txt", ("--format", "json"), "{"),
        ("r.html", ("--format", "svg"), "<svg "),
    ],
)
def test_formats(opwest, tmp_path, name, options, start):
    (manifest,) = copy_project("devices", tmp_path / "source")
    assert opwest("report", manifest, "-o", tmp_path / name, *options).code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_standard_output(opwest):
    done = opwest("report", GOLDEN / "devices" / "manifest.yaml", "-o", "-", "--format", "json")
    assert done.code == 0
    assert json.loads(done.out)["format"] == "opwest-report"
    shown = json.loads(opwest("report", GOLDEN / "devices" / "manifest.yaml", "-o", "-", "--json").out)
    assert shown["result"]["report"].startswith("<!DOCTYPE html>")


def test_comparison(opwest, project):
    old, new = project.parent / "old.html", project.parent / "new.json"
    assert opwest("report", project, "-o", old).code == 0
    done = opwest("report", project, "-o", new, "--compare", old, "--json")
    assert json.loads(done.out)["result"]["differences"] == 0
    assert json.loads(new.read_text())["changes"] == []
    other = opwest("report", GOLDEN / "devices" / "manifest.yaml", "-o", new, "--compare", old)
    assert other.code == 0
    assert "2 differences: 0 better, 0 worse" in other.out
    assert {change["before"] or change["after"] for change in json.loads(new.read_text())["changes"]} == {""}


def test_outdated_project_is_reported(opwest, project):
    manifest = manifest_of(project)
    manifest.write_text(manifest.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    page = project.parent / "report.html"
    done = opwest("report", project, "-o", page, "--json")
    assert done.code == 0
    value = json.loads(done.out)
    assert value["diagnostics"] == [
        {
            "severity": "warning",
            "message": "the project is out of date: manifest.yaml (changed); the report describes the current inputs",
            "location": {"file": str(project), "line": 0, "column": 0},
            "expected": None,
            "hint": f"run 'opwest update {project}'",
        }
    ]
    assert [(one["file"], one["state"]) for one in value["result"]["stale"]] == [("manifest.yaml", "changed")]
    assert "The project is out of date" in page.read_text(encoding="utf-8")
    assert opwest("update", project).code == 0
    assert opwest("report", project, "-o", page).err == ""
    assert "The project is out of date" not in page.read_text(encoding="utf-8")


def test_project_of_another_opwest_is_reported(opwest, project):
    lock = project / ".opwest" / "lock.json"
    value = json.loads(lock.read_text())
    value["record"]["models"][0]["steps"] = ["something_else"]
    lock.write_text(json.dumps(value))
    done = opwest("report", project, "-o", project.parent / "r.html")
    assert done.code == 0
    assert (
        "warning: the project was generated by another version of opwest; the report describes the current inputs"
        in done.err
    )


def refused(opwest, *arguments):
    done = opwest("report", *arguments)
    assert done.code == 1
    assert "Traceback" not in done.err
    return done.err


def test_directories_that_are_not_projects(opwest, tmp_path):
    page = tmp_path / "r.html"
    assert refused(opwest, tmp_path, "-o", page) == (
        f"{tmp_path}: error: not a directory generated by opwest\n"
        "  hint: generate one with 'opwest generate MANIFEST -o DIR', or run 'opwest report MANIFEST'\n"
    )
    assert "absent" in refused(opwest, tmp_path / "absent", "-o", page)
    assert "several directories given" in refused(opwest, tmp_path, tmp_path, "-o", page)
    assert not page.exists()


def test_damaged_lock(opwest, project):
    lock = project / ".opwest" / "lock.json"
    lock.write_text("{")
    assert f"{lock}: error: the lock is damaged: invalid JSON" in refused(opwest, project, "-o", "r.html")


def test_lock_with_a_damaged_record(opwest, project):
    lock = project / ".opwest" / "lock.json"
    value = json.loads(lock.read_text())
    for record in ({}, {"models": 3}, {"models": [3, {"name": 4}, {"name": "x", "inputs": 5}]}):
        lock.write_text(json.dumps({**value, "record": record}))
        text = refused(opwest, project, "-o", "r.html")
        assert (
            "lock.json: error: " in text and "restore it from version control, or create it with 'opwest update" in text
        )


def test_partially_written_project(opwest, project):
    (project / ".opwest" / "journal.json").write_text("{}")
    assert "incomplete project: a run of opwest was interrupted" in refused(opwest, project, "-o", "r.html")


def test_moved_manifest(opwest, project):
    shutil.move(manifest_of(project), project.parent / "elsewhere.yaml")
    text = refused(opwest, project, "-o", "r.html")
    assert "manifest not found: " in text


def test_project_without_a_recorded_manifest(opwest, project):
    (project / ".opwest" / "origin.json").unlink()
    assert refused(opwest, project, "-o", "r.html") == (
        f"{project}: error: the project does not record the path of its manifest\n"
        "  expected: .opwest/origin.json\n"
        "  hint: generate the report from the manifest: opwest report MANIFEST\n"
    )


def test_faults_of_the_manifest_are_reported_and_no_files_are_written(opwest, project):
    edit(manifest_of(project), "version: 1", "version: 1\nmodell: x")
    page = project.parent / "r.html"
    assert "modell" in refused(opwest, project, "-o", page)
    assert not page.exists()


def test_incomparable_or_unreadable_reports(opwest, project):
    source = manifest_of(project)
    page = project.parent / "r.html"
    text = refused(opwest, project, "-o", page, "--compare", source)
    assert text.startswith(f"{source}: error: cannot read the report for --compare: no report found")
    assert "cannot read the measurements: not JSON" in refused(opwest, project, "-o", page, "--profile", source)
    assert not page.exists()


def test_other_files_are_not_overwritten_by_a_report(opwest, project):
    mine = project.parent / "mine.html"
    mine.write_text("mine")
    assert "the file exists and is not a report" in refused(opwest, project, "-o", mine)
    assert mine.read_text() == "mine"


def test_usage(opwest):
    assert opwest("report", "x").code == 2
    assert opwest("report", "x", "-o", "y", "--format", "pdf").code == 2
