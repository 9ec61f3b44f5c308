# SPDX-License-Identifier: Apache-2.0
"""Faults of the manifest as a file, faults that a checked-in file cannot contain, and judgements on invalid files."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from invalid_cases import find
from judgements import compare_judgements
from opwest.cli.main import main
from opwest.manifest.arrays import ArrayError, read_array
from opwest.manifest.load import MAX_BYTES
from test_invalid import prepare
from workshop import FILE_NAMES, Workshop

JUDGED = [name for name in FILE_NAMES if name.endswith((".o", ".a", ".so", ".c"))]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def large(path: Path) -> None:
    path.touch()
    os.truncate(path, MAX_BYTES + 1)


@pytest.mark.parametrize(
    ("name", "make", "fault"),
    [
        ("nowhere.yaml", None, "cannot read the manifest: No such file or directory\n  expected: a YAML file\n"),
        (
            "digits",
            Path.mkdir,
            "the manifest is a directory\n  expected: a YAML file\n"
            "  hint: specify the file in it, for example digits/manifest.yaml\n",
        ),
        ("pipe.yaml", os.mkfifo, "the manifest is not a regular file\n  expected: a YAML file\n"),
        ("large.yaml", large, f"the file has {MAX_BYTES + 1} bytes\n  expected: at most {MAX_BYTES} bytes\n"),
    ],
)
def test_files_that_are_no_manifests(name, make, fault, capsys) -> None:
    if make is not None:
        make(Path(name))
    assert main(["check", name]) == 1
    assert capsys.readouterr() == ("", f"{name}: error: {fault}")


def test_constant_without_read_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.bin"
    path.touch()

    def refuse(*_: object, **__: object) -> io.BytesIO:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ArrayError, match=r"cannot read 'secret\.bin': Permission denied"):
        read_array(path, "secret", key_given=False)


def test_several_manifests_are_all_checked(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    os.chdir(workshop.folder)  # the fixture above restores the directory
    first, second = (find(name).manifests()["manifest.yaml"] for name in ("yaml/unclosed_list", "yaml/empty_file"))
    assert main(["check", *prepare({"first.yaml": first, "second.yaml": second}, workshop)]) == 1
    printed = capsys.readouterr().err
    assert "first.yaml" in printed and "second.yaml" in printed
    assert printed.endswith("opwest: 2 errors\n")


def test_command(workshop: Workshop) -> None:
    """The same with the installed command: exit code 1, no traceback, empty standard output."""
    case = find("yaml/unclosed_list")
    (name,) = prepare(case.manifests(), workshop)
    command = [sys.executable, "-m", "opwest", "check", name]
    done = subprocess.run(command, cwd=workshop.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == case.printed()


@pytest.mark.parametrize("name", JUDGED)
def test_inspect_and_check_have_one_judgement(workshop: Workshop, name: str) -> None:
    path = workshop.make(name)
    if not path.exists():
        assert path.is_symlink()  # a loop, or a link to nothing: check reports an invalid path
        return
    compare_judgements(path)
