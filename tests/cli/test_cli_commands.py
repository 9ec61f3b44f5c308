# SPDX-License-Identifier: Apache-2.0
"""The command line: exit codes, help, JSON, and files that `generate` keeps."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from golden_support import copy_project, emitted
from opwest import __version__
from opwest.cli import main

COMMANDS = ["generate", "update", "check", "init", "inspect", "run", "plan", "targets"]

UNEXPECTED = main.unexpected
"""The function itself: tests replace it (tests/conftest.py)."""


@pytest.fixture
def manifest(tmp_path):
    (path,) = copy_project("minimal", tmp_path / "source")
    return path


@pytest.fixture
def broken(manifest):
    """A manifest with two errors."""
    text = manifest.read_text().replace("call: negate", "call: negat").replace("files: [negate.c]", "files: [absent.c]")
    path = manifest.with_name("broken.yaml")
    path.write_text(text)
    return path


def report_of(text):
    """Parse the output of a command as strict JSON, without NaN and Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    report = json.loads(text, parse_constant=refuse)
    assert set(report) == {"ok", "diagnostics", "result"}
    for diagnostic in report["diagnostics"]:
        assert set(diagnostic) == {"severity", "message", "location", "expected", "hint"}
    return report


def test_version(opwest):
    done = opwest("--version")
    assert (done.code, done.out) == (0, f"opwest {__version__}\n")


def test_help(opwest):
    done = opwest("--help")
    assert done.code == 0
    for command in COMMANDS:
        assert command in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(opwest, command):
    done = opwest(command, "--help")
    assert done.code == 0 and not done.err
    assert f"usage: opwest {command}" in done.out
    words = done.out.split("\n\n")
    assert len(words) >= 2 and words[1].strip()
    assert "--json" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["unknown"],
        ["--unknown"],
        ["generate"],
        ["generate", "m.yaml"],
        ["generate", "-o", "x"],
        ["generate", "m.yaml", "-o", "x", "--runtime=other"],
        ["check"],
        ["inspect"],
        ["run"],
        ["run", "app"],
        ["run", "app", "--host", "--bits", "16"],
        ["targets", "x"],
    ],
)
def test_wrong_usage_is_2(opwest, arguments):
    done = opwest(*arguments)
    assert done.code == 2 and not done.out
    assert done.err.startswith("usage: opwest")


@pytest.mark.parametrize("arguments", [["check"], ["unknown"], ["run", "app"], ["targets", "x"]])
def test_wrong_usage_as_json(opwest, arguments):
    done = opwest(*arguments, "--json")
    assert done.code == 2 and not done.err
    report = report_of(done.out)
    (fault,) = report["diagnostics"]
    assert report["ok"] is False and report["result"] is None and fault["severity"] == "error"
    assert fault["message"] and fault["hint"].startswith("usage: opwest")


@pytest.mark.parametrize("verbose", [False, True])
def test_an_unexpected_exception_is_an_internal_error(opwest, manifest, monkeypatch, verbose):
    def run(options, faults):
        return {}[("a", "b")]

    monkeypatch.setattr(main, "unexpected", UNEXPECTED)
    monkeypatch.setattr(main, "_run", run)
    monkeypatch.setitem(globals(), "__name__", "opwest.tested")  # a module of opwest raises it
    done = opwest("inspect", manifest, *(["--verbose"] if verbose else []))
    line = run.__code__.co_firstlineno + 1
    assert done.code == 1 and done.out == ""
    assert f"opwest: error: internal error: KeyError: ('a', 'b'), at opwest.tested:{line}\n" in done.err
    hint = f"hint: report this error with the command, its files and the version, opwest {__version__}"
    assert done.err.endswith(f"  {hint}\n" if verbose else f"  {hint}; --verbose prints the traceback\n")
    assert ("Traceback (most recent call last):" in done.err) == verbose


def test_an_internal_error_as_json(opwest, manifest, monkeypatch):
    def run(options, faults):
        raise ValueError

    monkeypatch.setattr(main, "unexpected", UNEXPECTED)
    monkeypatch.setattr(main, "_run", run)
    done = opwest("targets", "--json")
    [fault] = report_of(done.out)["diagnostics"]
    assert done.code == 1 and fault["message"].startswith("internal error: ValueError, at opwest.cli.main:")
    assert "--verbose" not in fault["hint"]


def test_faulty_input_is_1(opwest, broken, tmp_path):
    for arguments in (["check", broken], ["generate", broken, "-o", tmp_path / "app"]):
        done = opwest(*arguments)
        assert done.code == 1 and "error" not in done.out
        assert f"{broken}:6:14: error: " in done.err and "absent.c" in done.err
        assert f"{broken}:16:14: error: undefined operator 'negat'" in done.err
        assert "hint: did you mean 'negate'?" in done.err
        assert re.search(r"\nopwest: [2-9] errors\n$", done.err)
        assert "Traceback" not in done.err
    assert not (tmp_path / "app").exists()


@pytest.mark.parametrize("command", ["check", "inspect"])
@pytest.mark.parametrize("name", ["absent", "."])
def test_missing_file_or_directory(opwest, command, name, tmp_path):
    done = opwest(command, tmp_path / name)
    assert done.code == 1 and str(tmp_path) in done.err and "error: " in done.err


@pytest.mark.parametrize("command", ["check", "generate", "inspect", "targets"])
def test_json_of_good_runs(opwest, command, manifest, tmp_path):
    arguments = {
        "check": [manifest],
        "generate": [manifest, "-o", tmp_path / "app"],
        "inspect": [manifest.with_name("negate.c")],
        "targets": [],
    }[command]
    done = opwest(command, *arguments, "--json")
    assert done.code == 0 and not done.err
    report = report_of(done.out)
    assert report["ok"] is True and report["diagnostics"] == [] and report["result"]


def test_json_of_check_lists_the_output(opwest, manifest):
    (model,) = report_of(opwest("check", manifest, "--json").out)["result"]
    assert model["model"] == "minimal" and model["steps"] == ["negate"]
    assert model["inputs"] == [{"name": "x", "dtype": "int16", "shape": [4]}]


def test_json_of_generate_lists_files(opwest, manifest, tmp_path):
    result = report_of(opwest("generate", manifest, "-o", tmp_path / "app", "--json").out)["result"]
    written = {path for path in result["written"] if (tmp_path / "app" / path).is_file()}
    assert len(written) == len(result["written"]) > 20 and result["removed"] == []
    again = report_of(opwest("generate", manifest, "-o", tmp_path / "app", "--json").out)["result"]
    assert again["written"] == [] and again["unchanged"] > 10


def test_json_of_failing_runs(opwest, broken, tmp_path):
    for arguments in (
        ["check", broken],
        ["generate", broken, "-o", tmp_path / "app"],
        ["inspect", tmp_path / "absent.o"],
        ["run", tmp_path, "--host"],
    ):
        done = opwest(*arguments, "--json")
        assert done.code == 1 and not done.err
        report = report_of(done.out)
        assert report["ok"] is False
        if arguments[0] == "check":
            (model,) = report["result"]
            assert [row["object"] for row in model["exportability"]] == ["absent.c"]
        else:
            assert report["result"] is None
        assert "error" in {d["severity"] for d in report["diagnostics"]}
    places = [d["location"] for d in report_of(opwest("check", broken, "--json").out)["diagnostics"]]
    for line in (6, 16):
        assert {"file": str(broken), "line": line, "column": 14} in places


def test_one_mistake_is_one_diagnostic(opwest, broken):
    broken.write_text(broken.read_text().replace("absent.c", "negate.c"))
    assert len(report_of(opwest("check", broken, "--json").out)["diagnostics"]) == 1


def test_two_faulty_manifests_are_reported_at_once(opwest, broken, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("version: 2\n")
    done = opwest("check", broken, other)
    assert done.code == 1 and str(broken) in done.err and str(other) in done.err


def test_inspect_shows_good_files_beside_bad_ones(opwest, manifest, tmp_path):
    done = opwest("inspect", manifest.with_name("negate.c"), tmp_path / "absent.o")
    assert done.code == 1 and "negate" in done.out and "absent.o" in done.err


def times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.name != "mutex"}


def test_generating_again_writes_no_files(opwest, manifest, tmp_path):
    app = tmp_path / "app"
    assert opwest("generate", manifest, "-o", app).code == 0
    for path in app.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(10**18, 10**18))
    before, content = times(app), emitted(app)
    done = opwest("generate", manifest, "-o", app)
    assert done.code == 0 and "0 files written, 0 removed" in done.out
    assert times(app) == before and emitted(app) == content


def test_generating_again_writes_only_changed_files(opwest, manifest, tmp_path):
    app = tmp_path / "app"
    assert opwest("generate", manifest, "-o", app).code == 0
    before = times(app)
    source = manifest.with_name("negate.c")
    source.write_text(source.read_text() + "/* More. */\n")
    assert opwest("generate", manifest, "-o", app).code == 0
    changed = {path.relative_to(app).as_posix() for path, time in times(app).items() if before.get(path) != time}
    # The metadata and the note contain the hash of the model.
    with_hash = {"models/minimal/note.S", "models/minimal/src/minimal_metadata.c"}
    assert changed == {".opwest/lock.json", "models/minimal/objects/any/negate.c"} | with_hash


def test_foreign_directories_are_rejected(opwest, manifest, tmp_path):
    app = tmp_path / "foreign"
    app.mkdir()
    (app / "precious.txt").write_text("mine")
    done = opwest("generate", manifest, "-o", app)
    assert done.code == 1 and "is not empty and was not created by opwest" in done.err
    assert [path.name for path in app.iterdir()] == ["precious.txt"]
    assert (app / "precious.txt").read_text() == "mine"


def test_manifest_directory_as_output_is_rejected(opwest, manifest):
    done = opwest("generate", manifest, "-o", manifest.parent)
    assert done.code == 1 and "is not empty" in done.err


def test_user_files_are_unchanged(opwest, manifest, tmp_path):
    app = tmp_path / "app"
    assert opwest("generate", manifest, "-o", app).code == 0
    mine = {"src/main.c": "/* mine */\n", "prj.conf": "CONFIG_MINE=y\n", "src/more.c": "int more;\n", "notes.txt": "x"}
    for path, text in mine.items():
        (app / path).write_text(text)
    (app / "README.md").unlink()
    manifest.write_text(manifest.read_text().replace("shape: [4]", "shape: [2, 2]"))
    done = opwest("generate", manifest, "-o", app)
    assert done.code == 0, done.err
    for path, text in mine.items():
        assert (app / path).read_text() == text
    assert not (app / "README.md").exists()
    assert "[] = {2U, 2U}" in (app / "models/minimal/src/minimal_metadata.c").read_text()


def test_changed_files_of_the_generator_are_reported(opwest, manifest, tmp_path):
    app = tmp_path / "app"
    assert opwest("generate", manifest, "-o", app).code == 0
    path = app / "models" / "minimal" / "src" / "minimal_run.c"
    path.write_text(path.read_text() + "/* mine */\n")
    done = opwest("generate", manifest, "-o", app)
    assert done.code == 1 and "minimal_run.c" in done.err
    assert path.read_text().endswith("/* mine */\n")


def test_runtime_of_the_workspace(opwest, manifest, tmp_path):
    app = tmp_path / "app"
    assert opwest("generate", manifest, "-o", app, "--runtime=module").code == 0
    assert not (app / "modules").exists()
    assert "modules/opwest" not in (app / "README.md").read_text()
    assert opwest("generate", manifest, "-o", app, "--runtime=vendored").code == 0
    assert (app / "modules" / "opwest" / "src" / "registry.c").is_file()
    assert opwest("generate", manifest, "-o", app, "--runtime=module").code == 0
    assert not list(app.glob("modules/**/*.c"))


def test_as_a_module_of_python(manifest):
    command = [sys.executable, "-m", "opwest", "check", str(manifest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("minimal: 1 operator, 1 step\n")


def test_closed_output_pipe(manifest):
    """`opwest targets | head -0` succeeds without a traceback."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "opwest", "targets"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.returncode == 0 and done.stderr == ""


def test_unexpected_error_of_the_system_is_no_traceback(opwest, monkeypatch, tmp_path):
    """Any file may become inaccessible between two accesses."""

    def fail(*_):
        raise PermissionError(13, "Permission denied", str(tmp_path / "offsets.npy"))

    monkeypatch.setattr("opwest.pipeline.load_manifests", fail)
    done = opwest("check", tmp_path / "manifest.yaml")
    assert (done.code, done.err) == (
        1,
        f"{tmp_path}/offsets.npy: error: cannot read or write the file: Permission denied\n",
    )


@pytest.mark.parametrize("readable", range(2))
def test_unreadable_file_is_reported_once(opwest, monkeypatch, manifest, readable):
    """The file can be read a number of times, and then no longer."""
    original = Path.read_bytes
    reads = []

    def read(path):
        if path.name == "negate.c":
            reads.append(path)
            if len(reads) > readable:
                raise PermissionError(13, "Permission denied", str(path))
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    done = opwest("check", manifest)
    assert done.code == 1 and done.err.count("error:") == 1, done.err
    assert "negate.c" in done.err and "ermission denied" in done.err
