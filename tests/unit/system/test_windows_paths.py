# SPDX-License-Identifier: Apache-2.0
"""Paths of Windows in every kind of file that opwest emits or records, with PureWindowsPath in place of Path.

The paths inside of a project are PurePosixPath on every host; those of the host enter files at the places tested here.
"""

import ast
import json
import ntpath
import re
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest
from opwest.importers.models import record
from opwest.importers.models.request import Options
from opwest.project.origin import Origin
from opwest.render.literals import c_string, cmake_string, yaml_string
from opwest.render.tensors import manifest_name
from opwest.report.sbom import zephyr_documents
from opwest.system import paths
from opwest.write import writer

ROOT = Path(__file__).resolve().parents[3]
GENERATOR = ROOT / "generator" / "opwest"


class WindowsPath(PureWindowsPath):
    """A path of Windows with the methods of Path that the functions under test call."""

    def absolute(self) -> "WindowsPath":
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
def test_spelling(path: str, text: str) -> None:
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
def test_lists_of_inputs(path: str, word: str, tmp_path: Path) -> None:
    """The depfile of ninja, and the list for CMake: absolute paths, one per line."""
    given: Any = WindowsPath(path)
    assert paths.in_make(given.absolute()) == word
    writer.write_dependencies(tmp_path / "x.d", [given])
    assert (tmp_path / "x.d").read_text(encoding="utf-8").split(" \\\n  ")[1] == f"{word}\n"
    writer.write_list(tmp_path / "list", [given, given])
    assert (tmp_path / "list").read_text(encoding="utf-8") == f"{given.absolute().as_posix()}\n"


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_relative_paths(target: str, folder: str, text: str) -> None:
    """os.path.relpath() raises ValueError between drives: the path is absolute then."""
    assert paths.relative(WindowsPath(target), WindowsPath(folder)) == text


@pytest.mark.parametrize(("target", "folder", "text"), RELATIVE)
def test_origin(target: str, folder: str, text: str, on_windows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    given: Any = WindowsPath(target)
    project: Any = WindowsPath(folder)
    file = Origin((given,), template=given).file(project)
    monkeypatch.undo()
    value = json.loads(file.content)
    assert value["manifests"] == [text] and value["template"] == text
    assert b"\\" not in file.content


@pytest.mark.parametrize(("target", "folder", "text"), RELATIVE)
def test_record_of_an_import(
    target: str, folder: str, text: str, on_windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "Path", WindowsPath)
    given: Any = WindowsPath(folder)
    content = record.record_text(WindowsPath(target), b"", given, Options(tuning=[target]))  # type: ignore[arg-type]
    monkeypatch.undo()
    value = json.loads(content)
    assert value["model"] == text and value["options"]["tuning"] == [text]
    assert b"\\" not in content


@pytest.mark.parametrize("name", ["C:/x.c", "C:x.c", "c:x.c", r"a\b.c", r"\x.c", "/x.c", "//server/share/x.c"])
def test_paths_of_other_hosts_in_a_manifest(name: str) -> None:
    """A drive, a root or a backslash: an error on every host."""
    assert not paths.is_portable(name)


@pytest.mark.parametrize("name", ["x.c", "a/b.c", "a b/c.c", "é.c", "a;b.c", "ab:c", "../x.c", "."])
def test_other_paths_in_a_manifest(name: str) -> None:
    assert paths.is_portable(name)


@dataclass
class Named:
    manifest: str


@pytest.mark.parametrize(
    "path", [r"C:\work\m\my.yaml", r"m\my.yaml", "m/my.yaml", r"\\server\share\my.yaml", "my.yaml"]
)
def test_name_of_the_manifest_in_emitted_files(path: str) -> None:
    model: Any = Named(path)
    assert manifest_name(model) == "my.yaml"


@pytest.mark.parametrize(("path", "text"), CASES)
def test_options_of_cmake(path: str, text: str) -> None:
    r"""`west build -- -DNAME=PATH`: CMake reads C:\new as an escape."""
    assert paths.cmake_option("OPWEST_RUNTIME", PureWindowsPath(path)) == f"-DOPWEST_RUNTIME={text}"


@pytest.mark.parametrize("name", ["./zephyr/zephyr.elf", r"./zephyr\zephyr.elf"])
def test_document_of_west_spdx_on_windows(name: str, tmp_path: Path) -> None:
    """West takes the name of the image from os.path.relpath()."""
    place = tmp_path / "build.spdx"
    lines = ["SPDXVersion: SPDX-2.3", "DocumentNamespace: http://x", f"FileName: {name}", "SPDXID: SPDXRef-zephyr.elf"]
    place.write_text("\n".join(lines), encoding="utf-8")
    assert zephyr_documents.read_build(place).image == "SPDXRef-zephyr.elf"


HOST_PATHS = re.compile(r"\.as_posix\(\)|os\.path\.relpath\(|os\.sep\b|import shlex|[^.]shlex\.")
HOMES = {"system/paths.py", "system/commands.py", "project/origin.py"}


def test_spelling_has_one_home() -> None:
    """Only system/ spells paths and commands; project/origin.py shortens a path for messages."""
    found = {
        path.relative_to(GENERATOR).as_posix()
        for path in GENERATOR.rglob("*.py")
        if HOST_PATHS.search(path.read_text(encoding="utf-8"))
    }
    assert found == HOMES


def test_options_with_paths_have_one_home() -> None:
    """`-DNAME={path}` is written only by paths.cmake_option()."""
    values = re.compile(r'f"-D\w*\{?[\w.]*\}?=\{(?!value\b|version\b)[^"}]*\}')
    found = [
        (path.name, text)
        for path in GENERATOR.rglob("*.py")
        for text in values.findall(path.read_text(encoding="utf-8"))
        if "spelled" not in text
    ]
    assert found == []
