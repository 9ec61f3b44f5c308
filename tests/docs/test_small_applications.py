# SPDX-License-Identifier: Apache-2.0
"""The sizes of applications in a workspace with the runtime: the example of README.md, and digits."""

import re
from pathlib import Path

import pytest
from in_process import succeed
from pages import ROOT
from preparations import archive, copy_digits

CONFIG = "[manifest]\npath = opwest\nfile = west.yml\n[zephyr]\nbase = zephyr\n"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A west workspace whose manifest repository is this one."""
    for name in ("ZEPHYR_BASE", "EXTRA_ZEPHYR_MODULES", "ZEPHYR_EXTRA_MODULES"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".west").mkdir()
    (tmp_path / ".west/config").write_text(CONFIG)
    (tmp_path / "opwest").symlink_to(ROOT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def size_of(app: Path) -> tuple[int, int]:
    """Return the number of files, and of lines, of all files of an application."""
    contents = [path.read_bytes() for path in app.rglob("*") if path.is_file()]
    return len(contents), sum(content.count(b"\n") for content in contents)


def test_example_of_the_readme(workspace):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    header = re.search(r"^```c\n(/\* ops\.h \*/\n.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert header is not None
    (workspace / "ops.h").write_text(header[1])
    archive(workspace)
    succeed("init", "libops.a", "ops.h", "--model", "spectrum")
    done = succeed("generate", "manifest.yaml", "-o", "spectrum")
    assert done.stdout.endswith(f"runtime: the Zephyr module opwest in {workspace}/opwest\n")
    written = re.search(r"the runtime is not copied: (\d+ files)", text)
    assert written is not None and f"spectrum: {written[1]} written" in done.stdout
    files, lines = size_of(workspace / "spectrum")
    assert files <= 30
    assert lines <= 1800
    succeed("generate", "manifest.yaml", "-o", "copied", "--runtime=vendored")
    files, lines = size_of(workspace / "copied")
    assert files <= 42
    assert lines <= 4100


def test_digits(workspace):
    (workspace / "source").mkdir()
    succeed("generate", copy_digits(workspace / "source"), "-o", "digits")
    files, lines = size_of(workspace / "digits")
    assert files <= 45
    assert lines <= 3000
