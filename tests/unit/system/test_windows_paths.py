# SPDX-License-Identifier: Apache-2.0
"""Paths of Windows in every kind of file that opwest emits or records, with PureWindowsPath in place of Path.

The paths inside of a project are PurePosixPath on every host; those of the host enter files at the places tested here.
"""

import ast
import json
import ntpath
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import pytest
from opwest.base import paths
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.base.files import ProjectFile
from opwest.base.paths import fault_on_windows
from opwest.cli.main import main
from opwest.compiler.folder import _check_names, write_folder
from opwest.compiler.request import Options
from opwest.imports import import_json
from opwest.project import writer
from opwest.project.origin import Origin
from opwest.project.store import check_portable
from opwest.render.literals import c_string, cmake_string, yaml_string
from opwest.render.tensors import manifest_name
from opwest.reports.sbom import collect

ROOT = Path(__file__).resolve().parents[3]
GENERATOR = ROOT / "generator" / "opwest"


class WindowsPath(PureWindowsPath):
    """A path of Windows with the methods of Path that the functions under test call."""

    def absolute(self):
        return self if self.is_absolute() else WindowsPath(r"C:\work") / self


CASES = [
    (r"C:\Users\me\conv.c", "C:/Users/me/conv.c"),
    (r"C:\Users\me\my model\conv.c", "C:/Users/me/my model/conv.c"),
    (r"\\server\share\conv#1.c", "//server/share/conv#1.c"),
    (r"D:\a$b\conv.c", "D:/a$b/conv.c"),
    (r"D:\new;table\u1.c", "D:/new;table/u1.c"),
    (r"C:\模型\ü.c", "C:/模型/ü.c"),
    (r"models\m\x.c", "models/m/x.c"),
]
"""Paths, and their spelling in files. \\n, \\t, \\u and \\U would be escapes in C, CMake, JSON and YAML."""


@pytest.mark.parametrize(("path", "text"), CASES)
def test_spelling(path, text):
    pure = PureWindowsPath(path)
    assert paths.spelled(pure) == text
    cmake = cmake_string(paths.spelled(pure))
    assert re.sub(r"\\([;$])", r"\1", cmake) == f'"{text}"'
    assert not re.search(r"(?<!\\)[;$]", cmake), "a list or a reference to a variable"
    c = c_string(paths.spelled(pure))
    assert ast.literal_eval("b" + c).decode() == text
    assert "\\" not in re.sub(r"\\[0-7]{3}", "", c)
    assert json.loads(yaml_string(paths.spelled(pure))) == text


@pytest.mark.parametrize(
    ("path", "word"),
    [
        (r"C:\Users\me\my model\conv.c", r"C:/Users/me/my\ model/conv.c"),
        (r"\\server\share\conv#1.c", r"//server/share/conv\#1.c"),
        (r"D:\a$b\conv.c", "D:/a$$b/conv.c"),
        (r"conv;1.c", "C:/work/conv;1.c"),
    ],
)
def test_lists_of_inputs(path, word, tmp_path):
    """The depfile of ninja, and the list for CMake: absolute paths, one per line."""
    given: Any = WindowsPath(path)
    assert paths.in_make(given.absolute()) == word
    writer.write_dependencies(tmp_path / "x.d", [given])
    assert (tmp_path / "x.d").read_text(encoding="utf-8").split(" \\\n  ")[1] == f"{word}\n"
    writer.write_list(tmp_path / "list", [given, given])
    assert (tmp_path / "list").read_text(encoding="utf-8") == f"{given.absolute().as_posix()}\n"


@pytest.fixture
def on_windows(monkeypatch):
    """os.path and Path of Windows where paths between directories are computed."""
    monkeypatch.setattr(paths.os, "path", ntpath)
    monkeypatch.setattr(ntpath, "realpath", lambda path, **_: ntpath.normpath(str(path)))
    monkeypatch.setattr(paths, "Path", WindowsPath)


RELATIVE = [
    (r"C:\work\m\manifest.yaml", r"C:\work\app", "../m/manifest.yaml"),
    (r"C:\work\app\m.yaml", r"c:\WORK\app", "m.yaml"),
    (r"D:\models\manifest.yaml", r"C:\work\app", "D:/models/manifest.yaml"),
    (r"\\server\share\m.yaml", r"C:\work\app", "//server/share/m.yaml"),
    (r"\\server\share\m.yaml", r"\\server\share\app", "../m.yaml"),
]


@pytest.mark.parametrize(("target", "folder", "text"), RELATIVE)
@pytest.mark.usefixtures("on_windows")
def test_relative_paths(target, folder, text):
    """os.path.relpath() raises ValueError between drives: the path is absolute then."""
    assert paths.relative(WindowsPath(target), WindowsPath(folder)) == text


@pytest.mark.parametrize(("target", "folder", "text"), RELATIVE)
def test_origin(target, folder, text, on_windows, monkeypatch):
    given: Any = WindowsPath(target)
    project: Any = WindowsPath(folder)
    file = Origin((given,), template=given).file(project)
    monkeypatch.undo()
    value = json.loads(file.content)
    assert value["manifests"] == [text] and value["template"] == text
    assert b"\\" not in file.content


@pytest.mark.parametrize(("target", "folder", "text"), RELATIVE)
def test_record_of_an_import(target, folder, text, on_windows, monkeypatch):
    monkeypatch.setattr(import_json, "Path", WindowsPath)
    given: Any = WindowsPath(folder)
    content = import_json.import_json_text(WindowsPath(target), b"", given, Options(tuning=[target]), [])
    monkeypatch.undo()
    value = json.loads(content)
    assert value["model"] == text and value["options"]["tuning"] == [text]
    assert b"\\" not in content


@pytest.mark.parametrize("name", ["C:/x.c", "C:x.c", "c:x.c", r"a\b.c", r"\x.c", "/x.c", "//server/share/x.c"])
def test_paths_of_other_hosts_in_a_manifest(name):
    """A drive, a root or a backslash: an error on every host."""
    assert not paths.is_portable(name)


@pytest.mark.parametrize("name", ["x.c", "a/b.c", "a b/c.c", "é.c", "a;b.c", "ab:c", "../x.c", "."])
def test_other_paths_in_a_manifest(name):
    assert paths.is_portable(name)


@dataclass
class Named:
    manifest: str


@pytest.mark.parametrize(
    "path", [r"C:\work\m\my.yaml", r"m\my.yaml", "m/my.yaml", r"\\server\share\my.yaml", "my.yaml"]
)
def test_name_of_the_manifest_in_emitted_files(path):
    model: Any = Named(path)
    assert manifest_name(model) == "my.yaml"


@pytest.mark.parametrize(("path", "text"), CASES)
def test_options_of_cmake(path, text):
    r"""`west build -- -DNAME=PATH`: CMake reads C:\new as an escape."""
    assert paths.cmake_option("OPWEST_RUNTIME", PureWindowsPath(path)) == f"-DOPWEST_RUNTIME={text}"


@pytest.mark.parametrize("name", ["./zephyr/zephyr.elf", r"./zephyr\zephyr.elf"])
def test_document_of_west_spdx_on_windows(name, tmp_path):
    """West takes the name of the image from os.path.relpath()."""
    place = tmp_path / "build.spdx"
    lines = ["SPDXVersion: SPDX-2.3", "DocumentNamespace: http://x", f"FileName: {name}", "SPDXID: SPDXRef-zephyr.elf"]
    place.write_text("\n".join(lines), encoding="utf-8")
    assert collect.read_build(place).image == "SPDXRef-zephyr.elf"


HOST_PATHS = re.compile(r"\.as_posix\(\)|os\.path\.relpath\(|os\.sep\b|import shlex|[^.]shlex\.")
HOMES = {"base/paths.py", "base/commands.py", "project/origin.py"}


def test_spelling_has_one_home():
    """Only base/ spells paths and commands; project/origin.py shortens a path for messages."""
    found = {
        path.relative_to(GENERATOR).as_posix()
        for path in GENERATOR.rglob("*.py")
        if HOST_PATHS.search(path.read_text(encoding="utf-8"))
    }
    assert found == HOMES


def test_options_with_paths_have_one_home():
    """`-DNAME={path}` is written only by paths.cmake_option()."""
    values = re.compile(r'f"-D\w*\{?[\w.]*\}?=\{(?!value\b|version\b)[^"}]*\}')
    found = [
        (path.name, text)
        for path in GENERATOR.rglob("*.py")
        for text in values.findall(path.read_text(encoding="utf-8"))
        if "spelled" not in text
    ]
    assert found == []


# --- Paths as Windows and macOS have them: case, reserved names, drives, backslashes, line ends of git


def project_files(*paths):
    return [ProjectFile(PurePosixPath(path), b"", "generator") for path in paths]


@pytest.mark.parametrize("paths", [("a/B.c", "a/b.c"), ("a/x.c", "A/y.c"), ("straße.c", "STRASSE.c")])
def test_paths_that_differ_only_in_case(paths):
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
def test_names_of_windows(name, reason):
    assert fault_on_windows(name) == reason
    if hasattr(ntpath, "isreserved") and ":" not in name:  # from Python 3.13 on; a:b is a stream of file a
        assert ntpath.isreserved(name) == (reason is not None)


def manifest(folder, *sources):
    folder.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "tests" / "golden" / "minimal" / "manifest.yaml").read_text(encoding="utf-8")
    place = folder / "manifest.yaml"
    place.write_text(text.replace("negate.c", ", ".join(sources)), encoding="utf-8")
    for source in sources:
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / "golden" / "minimal" / "negate.c", folder / source)
    return place


def test_reserved_name_is_a_warning_here(tmp_path, capsys):
    place = manifest(tmp_path, "aux.c")
    assert main(["generate", str(place), "-o", str(tmp_path / "app")]) == 0
    found = capsys.readouterr().err
    assert "warning: Windows does not permit the file name 'models/minimal/objects/any/aux.c'" in found
    assert "'aux' is the name of a device" in found


def test_constants_that_differ_only_in_case(tmp_path, capsys):
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


@pytest.mark.parametrize(("source", "folder"), [("dir./negate.c", "dir."), ("a /negate.c", "a ")])
def test_directory_that_ends_with_a_dot_or_a_space(source, folder, tmp_path, capsys, monkeypatch):
    place = manifest(tmp_path, source)
    text = f"Windows does not permit the file name 'models/minimal/objects/any/{folder}': its last character is a "
    assert main(["generate", str(place), "-o", str(tmp_path / "app")]) == 0
    assert f"warning: {text}space or a dot" in capsys.readouterr().err
    monkeypatch.setattr("opwest.project.store.os.name", "nt")
    faults = Diagnostics()
    check_portable(project_files(f"models/{folder}/x.c"), faults)
    monkeypatch.undo()
    assert [one.severity for one in faults] == ["error"]


@pytest.mark.parametrize("name", ["con", "nul", "com1"])
def test_reserved_name_of_a_driver(name, tmp_path, capsys):
    """The name is new, so that the error is one on every host."""
    assert main(["new-driver", name, "-o", str(tmp_path / "driver")]) == 1
    found = capsys.readouterr().err
    assert f"Windows does not permit files with the name '{name}': '{name}' is the name of a device" in found
    assert "hint: choose another name" in found


def test_directory_of_an_importer(tmp_path, monkeypatch):
    """Files of an imported model have names of the model."""
    with pytest.raises(OpwestError, match=r"the files 'operators/Conv\.c' and 'operators/conv\.c' differ only in case"):
        write_folder(tmp_path / "new", {"operators/conv.c": b"", "operators/Conv.c": b""})
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("opwest.compiler.folder.os.name", "nt")
    with pytest.raises(OpwestError) as caught:
        _check_names(tmp_path, ["operators/aux.c"])
    monkeypatch.undo()
    [fault] = caught.value.diagnostics
    assert fault.message == "Windows does not permit the file name 'operators/aux.c': 'aux' is the name of a device"
    assert fault.hint == "rename the operator or the file in the model"
    write_folder(tmp_path / "new", {"operators/aux.c": b""})
    assert (tmp_path / "new" / "operators" / "aux.c").exists()


def with_crlf(folder):
    """Convert text as git with core.autocrlf does; return the number of files."""
    count = 0
    for place in folder.rglob("*"):
        if place.is_file():
            content = place.read_bytes()
            if b"\0" not in content and b"\n" in content:
                place.write_bytes(content.replace(b"\n", b"\r\n"))
                count += 1
    return count


def test_project_that_git_checked_out_with_crlf(tmp_path, capsys):
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


def test_update_of_a_project_with_crlf(tmp_path, capsys):
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


def test_edited_file_with_crlf_is_an_error(tmp_path, capsys):
    place = manifest(tmp_path / "m", "negate.c")
    app = tmp_path / "app"
    assert main(["generate", str(place), "-o", str(app)]) == 0
    with_crlf(app)
    run_c = app / "models" / "minimal" / "src" / "minimal_run.c"
    run_c.write_bytes(run_c.read_bytes() + b"/* mine */\r\n")
    assert main(["generate", str(place), "-o", str(app)]) == 1
    assert "the file was edited; opwest does not overwrite it" in capsys.readouterr().err
    assert Path(run_c).exists()
