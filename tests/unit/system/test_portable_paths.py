# SPDX-License-Identifier: Apache-2.0
"""Paths as Windows and macOS have them: case, reserved names, drives, backslashes, line ends of git."""

import json
import ntpath
import shutil
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from opwest.cli.main import main
from opwest.diagnostics import Diagnostics, OpwestError
from opwest.files import ProjectFile, is_inside
from opwest.importers.folder import _check_names, write_folder
from opwest.project.portable import check_portable
from opwest.system.paths import fault_on_windows

ROOT = Path(__file__).resolve().parents[3]


def project_files(*paths: str) -> list[ProjectFile]:
    return [ProjectFile(PurePosixPath(path), b"", "generator") for path in paths]


@pytest.mark.parametrize("paths", [("a/B.c", "a/b.c"), ("a/x.c", "A/y.c"), ("straße.c", "STRASSE.c")])
def test_paths_that_differ_only_in_case(paths: tuple[str, str]) -> None:
    faults = Diagnostics()
    check_portable(project_files(*paths), faults)
    [one] = list(faults)
    assert one.severity == "error" and one.message.endswith("of the project differ only in case")
    assert one.hint == "rename the file, or the constant, in the manifest"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("con", "'con' is the name of a device"),
        ("AUX.c", "'AUX' is the name of a device"),
        ("nul.tar.gz", "'nul' is the name of a device"),
        ("com1.c", "'com1' is the name of a device"),
        ("a.", "its last character is a space or a dot"),
        ("a ", "its last character is a space or a dot"),
        ("a:b", "it contains ':'"),
        ("confused.c", None),
        ("com10.c", None),
        ("a b.c", None),
    ],
)
def test_names_of_windows(name: str, reason: str | None) -> None:
    assert fault_on_windows(name) == reason
    if hasattr(ntpath, "isreserved") and ":" not in name:  # from Python 3.13 on; a:b is a stream of file a
        assert ntpath.isreserved(name) == (reason is not None)


def manifest(folder: Path, *sources: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "tests" / "golden" / "minimal" / "manifest.yaml").read_text(encoding="utf-8")
    place = folder / "manifest.yaml"
    place.write_text(text.replace("negate.c", ", ".join(sources)), encoding="utf-8")
    for source in sources:
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / "golden" / "minimal" / "negate.c", folder / source)
    return place


def test_reserved_name_is_a_warning_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = manifest(tmp_path, "aux.c")
    assert main(["generate", str(place), "-o", str(tmp_path / "app")]) == 0
    found = capsys.readouterr().err
    assert "warning: Windows does not permit the file name 'models/minimal/objects/any/aux.c'" in found
    assert "'aux' is the name of a device" in found


def test_constants_that_differ_only_in_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A constant has a file of its name."""
    place = manifest(tmp_path, "negate.c")
    text = place.read_text(encoding="utf-8")
    outputs = "{y: {dtype: int16, shape: [4]}, a: {dtype: int16, shape: [4]}, b: {dtype: int16, shape: [4]}}"
    text = text.replace("{y: {dtype: int16, shape: [4]}}", outputs)
    text += "    - {call: negate, args: [w, a]}\n    - {call: negate, args: [W, b]}\n"
    place.write_text(f"{text}constants: {{w: {{file: w.npy}}, W: {{file: v.npy}}}}\n", encoding="utf-8")
    for name in ("w.npy", "v.npy"):
        np.save(tmp_path / name, np.arange(4, dtype="int16") + ord(name[0]))
    assert main(["generate", str(place), "-o", str(tmp_path / "app")]) == 1
    found = capsys.readouterr().err
    assert "files 'models/minimal/constants/W.bin' and 'models/minimal/constants/w.bin' of the project" in found
    assert "hint: rename the file, or the constant, in the manifest" in found
    assert not (tmp_path / "app" / "models").exists()


def test_models_that_differ_only_in_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = manifest(tmp_path / "a", "negate.c"), manifest(tmp_path / "b", "negate.c")
    text = second.read_text(encoding="utf-8")
    second.write_text(text.replace("model: minimal", "model: Minimal"), encoding="utf-8")
    assert main(["check", str(first), str(second)]) == 1
    assert "models 'minimal' and 'Minimal' differ only in case" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["con", "aux", "com1"])
def test_reserved_name_of_a_model(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = manifest(tmp_path, "negate.c")
    text = place.read_text(encoding="utf-8")
    place.write_text(text.replace("model: minimal", f"model: {name}"), encoding="utf-8")
    assert main(["generate", str(place), "-o", str(tmp_path / "app")]) == 0
    found = capsys.readouterr().err
    assert f"Windows does not permit the file name 'models/{name}': '{name}' is the name of a device" in found


@pytest.mark.parametrize(("source", "folder"), [("dir./negate.c", "dir."), ("a /negate.c", "a ")])
def test_directory_that_ends_with_a_dot_or_a_space(
    source: str, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = manifest(tmp_path, source)
    text = f"Windows does not permit the file name 'models/minimal/objects/any/{folder}': its last character is a "
    assert main(["generate", str(place), "-o", str(tmp_path / "app")]) == 0
    assert f"warning: {text}space or a dot" in capsys.readouterr().err
    monkeypatch.setattr("opwest.project.portable.os.name", "nt")
    faults = Diagnostics()
    check_portable(project_files(f"models/{folder}/x.c"), faults)
    monkeypatch.undo()
    assert [one.severity for one in faults] == ["error"]


@pytest.mark.parametrize("name", ["con", "nul", "com1"])
def test_reserved_name_of_a_driver(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name is new, so that the error is one on every host."""
    assert main(["new-driver", name, "-o", str(tmp_path / "driver")]) == 1
    found = capsys.readouterr().err
    assert f"Windows does not permit files with the name '{name}': '{name}' is the name of a device" in found
    assert "hint: choose another name" in found


def test_directory_of_an_importer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of an imported model have names of the model."""
    with pytest.raises(OpwestError, match=r"the files 'operators/Conv\.c' and 'operators/conv\.c' differ only in case"):
        write_folder(tmp_path / "new", {"operators/conv.c": b"", "operators/Conv.c": b""})
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("opwest.importers.folder.os.name", "nt")
    with pytest.raises(OpwestError) as caught:
        _check_names(tmp_path, ["operators/aux.c"])
    monkeypatch.undo()
    [fault] = caught.value.diagnostics
    assert fault.message == "Windows does not permit the file name 'operators/aux.c': 'aux' is the name of a device"
    assert fault.hint == "rename the operator or the file in the model"
    write_folder(tmp_path / "new", {"operators/aux.c": b""})
    assert (tmp_path / "new" / "operators" / "aux.c").exists()


def test_backslashes_in_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A manifest works on all hosts: backslashes are an error on each."""
    place = manifest(tmp_path, "objects/negate.c")
    place.write_text(place.read_text(encoding="utf-8").replace("objects/", "objects\\"), encoding="utf-8")
    assert main(["check", str(place)]) == 1
    found = capsys.readouterr().err
    assert "'objects\\\\negate.c' is not a relative path with forward slashes" in found
    assert "hint: for example objects/conv.o" in found


@pytest.mark.parametrize("path", ["a\\b.c", "C:/x", "/a", "../a", "a/../b"])
def test_paths_of_a_project_have_forward_slashes(path: str) -> None:
    assert not is_inside(path) or ":" in path


def with_crlf(folder: Path) -> int:
    """Convert text as git with core.autocrlf does; return the number of files."""
    count = 0
    for place in folder.rglob("*"):
        if place.is_file():
            content = place.read_bytes()
            if b"\0" not in content and b"\n" in content:
                place.write_bytes(content.replace(b"\n", b"\r\n"))
                count += 1
    return count


def test_project_that_git_checked_out_with_crlf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = manifest(tmp_path / "m", "negate.c")
    app = tmp_path / "app"
    assert main(["generate", str(place), "-o", str(app)]) == 0
    assert with_crlf(app) > 20 and with_crlf(tmp_path / "m") == 2
    before = {path: path.read_bytes() for path in app.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main(["generate", str(place), "-o", str(app), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    assert found["ok"] and not changed
    assert main(["generate", str(place), "-o", str(tmp_path / "new")]) == 0
    for path in (tmp_path / "new").rglob("*"):
        if path.is_file() and path.name != "origin.json":
            content = path.read_bytes()
            assert b"\r" not in content, path
            assert before[app / path.relative_to(tmp_path / "new")].replace(b"\r\n", b"\n") == content, path


def test_update_of_a_project_with_crlf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = manifest(tmp_path / "m", "negate.c")
    app = tmp_path / "app"
    assert main(["generate", str(place), "-o", str(app)]) == 0
    with_crlf(app)
    assert main(["update", str(app), "--check"]) == 0, capsys.readouterr().err
    main_c = app / "src" / "main.c"
    main_c.write_bytes(main_c.read_bytes() + b"/* mine */\r\n")
    place.write_text(place.read_text(encoding="utf-8").replace("[4]", "[8]"), encoding="utf-8")
    assert main(["update", str(app)]) == 0, capsys.readouterr().err
    content = main_c.read_bytes()
    assert b"/* mine */\r\n" in content and content.count(b"\n") == content.count(b"\r\n")
    assert b"<<<<" not in content


def test_edited_file_with_crlf_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = manifest(tmp_path / "m", "negate.c")
    app = tmp_path / "app"
    assert main(["generate", str(place), "-o", str(app)]) == 0
    with_crlf(app)
    run_c = app / "models" / "minimal" / "src" / "minimal_run.c"
    run_c.write_bytes(run_c.read_bytes() + b"/* mine */\r\n")
    assert main(["generate", str(place), "-o", str(app)]) == 1
    assert "the file was edited; opwest does not overwrite it" in capsys.readouterr().err
    assert Path(run_c).exists()
