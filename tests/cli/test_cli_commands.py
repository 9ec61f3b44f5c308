# SPDX-License-Identifier: Apache-2.0
"""The command line: exit codes, help, JSON, and files that `generate` keeps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from golden_support import copy_project
from opwest import __version__
from opwest.cli import main
from opwest.cli.parser import MAIN_COMMANDS, command_names
from test_cli_json import report_of

COMMANDS = command_names()

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


def test_version_and_help(succeed):
    assert succeed("--version").out == f"opwest {__version__}\n"
    listed = re.findall(r"^    (\S+) {2,}\S", succeed("--help").out, re.MULTILINE)
    assert listed == [*MAIN_COMMANDS]
    others = {row["command"].split()[0] for row in report_of(succeed("more", "--json").out)["result"]}
    assert sorted([*listed, *others, "more"]) == sorted(command_names())
    assert succeed("help", "check").out == succeed("check", "--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(succeed, command):
    done = succeed(command, "--help")
    assert not done.err
    assert f"usage: opwest {command}" in done.out
    words = done.out.split("\n\n")
    assert len(words) >= 2 and words[1].strip()
    assert "--json" in done.out


WRONG_USAGE = (
    *("", "unknown", "--unknown", "check", "inspect", "targets x"),
    *("generate", "generate m.yaml", "generate -o x", "generate m.yaml -o x --runtime=other"),
    *("run", "run app x", "run app --bits 16", "run app --host --board b"),
    *("run app --board b --repeat 0", "run app --board b --timeout -1"),
    *("plan t.csv --capacity 0", "plan t.csv --capacity x", "plan t.csv --nodes 0", "plan t.csv --planner best"),
    *("report x", "report x -o y --format pdf"),
    *("update", "update a --check --dry-run", "update a --template t --no-template"),
)


@pytest.mark.parametrize("arguments", WRONG_USAGE)
def test_wrong_usage_is_2(opwest, arguments):
    done = opwest(*arguments.split())
    assert done.code == 2 and not done.out
    assert done.err.startswith("usage: opwest")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ("generat", "unknown command 'generat'", "did you mean 'generate'?"),
        ("zzz", "unknown command 'zzz'", "'opwest --help' and 'opwest more' list the commands"),
        ("run app --sanitise", "unknown option '--sanitise'", "did you mean '--sanitize'?"),
        ("run app --zzz=1", "unknown option '--zzz'", "'opwest run --help' lists the options"),
        ("bundle --roll-back", "unknown option '--roll-back'", "did you mean 'opwest bundle roll-back'?"),
        ("import m.tflite --optimise ram", "unknown option '--optimise'", "did you mean '--optimize'?"),
        ("import tflit m -o x", "unknown kind of model: 'tflit'", "did you mean 'tflite'?"),
        ("import m.foo -o x", "unknown kind of model: 'm.foo'", "the kinds are tflite, torch, onnx, vela and mlf: "),
    ],
)
def test_misspelt_words(opwest, arguments, message, hint):
    done = opwest(*arguments.split())
    assert done.code == 2 and f": error: {message}\n  hint: {hint}" in done.err
    fault = report_of(opwest(*arguments.split(), "--json").out)["diagnostics"][0]
    assert fault["message"] == message and fault["hint"].startswith(hint)


@pytest.mark.parametrize("arguments", ["check", "run", "targets x"])
def test_wrong_usage_as_json(opwest, arguments):
    done = opwest(*arguments.split(), "--json")
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


def test_json_of_check_and_generate(opwest, manifest, tmp_path):
    def result_of(*arguments):
        return report_of(opwest(*arguments, "--json").out)["result"]

    (model,) = result_of("check", manifest)
    assert model["model"] == "minimal" and model["steps"] == ["negate"]
    assert model["inputs"] == [{"name": "x", "dtype": "int16", "shape": [4], "bytes": 8}]
    result = result_of("generate", manifest, "-o", tmp_path / "app")
    assert all((tmp_path / "app" / path).is_file() for path in result["written"])
    assert len(result["written"]) > 20 and result["removed"] == []
    again = result_of("generate", manifest, "-o", tmp_path / "app")
    assert again["written"] == [] and again["unchanged_count"] > 10


def test_json_of_failing_runs(fail, broken, tmp_path):
    for arguments in (
        ["check", broken],
        ["generate", broken, "-o", tmp_path / "app"],
        ["inspect", tmp_path / "absent.o"],
        ["run", tmp_path, "--host"],
    ):
        done = fail(*arguments, "--json")
        assert not done.err
        report = report_of(done.out)
        assert report["ok"] is False
        assert "error" in {d["severity"] for d in report["diagnostics"]}
        if arguments[0] == "check":
            (model,) = report["result"]
            assert [row["object"] for row in model["exportability"]] == ["absent.c"]
            places = [d["location"] for d in report["diagnostics"]]
            assert all({"file": str(broken), "line": line, "column": 14} in places for line in (6, 16))
        else:
            assert report["result"] is None


def test_inspect_shows_good_files_beside_bad_ones(fail, manifest, tmp_path):
    done = fail("inspect", manifest.with_name("negate.c"), tmp_path / "absent.o")
    assert "negate" in done.out and "absent.o" in done.err


def test_generating_again_writes_only_changed_files(opwest, succeed, manifest, tmp_path):
    def times():
        return {path: path.stat().st_mtime_ns for path in app.rglob("*") if path.is_file() and path.name != "mutex"}

    app = tmp_path / "app"
    succeed("generate", manifest, "-o", app)
    before = times()
    assert "0 files written, 0 removed" in opwest("generate", manifest, "-o", app).out
    source = manifest.with_name("negate.c")
    source.write_text(source.read_text() + "/* More. */\n")
    succeed("generate", manifest, "-o", app)
    changed = {path.relative_to(app).as_posix() for path, time in times().items() if before.get(path) != time}
    # The metadata and the note contain the hash of the model.
    with_hash = {"models/minimal/note.S", "models/minimal/src/minimal_metadata.c"}
    assert changed == {".opwest/lock.json", "models/minimal/objects/any/negate.c"} | with_hash


def test_runtime_of_the_workspace(succeed, fail, manifest, tmp_path):
    app = tmp_path / "app"
    succeed("generate", manifest, "-o", app, "--runtime=module")
    assert not (app / "modules").exists()
    assert "modules/opwest" not in (app / "README.md").read_text()
    succeed("generate", manifest, "-o", app, "--runtime=vendored")
    assert (app / "modules" / "opwest" / "src" / "registry.c").is_file()
    succeed("generate", manifest, "-o", app, "--runtime=module")
    assert not list(app.glob("modules/**/*.c"))
    assert "is not empty" in fail("generate", manifest, "-o", manifest.parent).err


def test_an_interruption_is_130(opwest, manifest, monkeypatch):
    def run(options, faults):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_run", run)
    done = opwest("check", manifest, "--json")
    assert (done.code, done.out, done.err) == (130, "", "opwest: interrupted\n")


def test_closed_output_pipe():
    """`opwest targets | head -0` succeeds without a traceback."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "opwest", "targets"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.returncode == 0 and done.stderr == ""


def test_unexpected_error_of_the_system_is_no_traceback(fail, monkeypatch, tmp_path):
    """Any file may become inaccessible between two accesses."""

    def refuse(*_):
        raise PermissionError(13, "Permission denied", str(tmp_path / "offsets.npy"))

    monkeypatch.setattr("opwest.pipeline.load_manifests", refuse)
    done = fail("check", tmp_path / "manifest.yaml")
    assert done.err == f"{tmp_path}/offsets.npy: error: cannot read or write the file: Permission denied\n"


@pytest.mark.parametrize("readable", range(2))
def test_unreadable_file_is_reported_once(fail, monkeypatch, manifest, readable):
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
    done = fail("check", manifest)
    assert done.err.count("error:") == 1, done.err
    assert "negate.c" in done.err and "ermission denied" in done.err
