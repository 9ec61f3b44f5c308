# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host` with MinGW, whose programs Wine runs, and linked for macOS by Zig, not run."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from golden_support import generate_project
from in_process import fail, succeed
from requirements_support import need


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    need("x86_64-w64-mingw32-gcc", "wine")
    return tmp_path_factory.mktemp("wine")


@pytest.fixture
def windows(prefix, monkeypatch):
    """Compile with MinGW, and run programs with Wine."""
    monkeypatch.setenv("WINEPREFIX", str(prefix / "prefix"))
    monkeypatch.setenv("WINEDEBUG", "-all")
    monkeypatch.setenv("CC", "x86_64-w64-mingw32-gcc")

    class WithWine(subprocess.Popen):
        def __init__(self, command, **options):
            super().__init__(["wine", *command] if str(command[0]).endswith(".exe") else command, **options)

    monkeypatch.setattr(subprocess, "Popen", WithWine)


def test_results_with_mingw(windows, tmp_path):
    app = generate_project("minimal", tmp_path)
    np.save(tmp_path / "x.npy", np.array([1, -2, 300, 4], dtype="int16"))
    succeed("run", app, "--host", "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [-1, 2, -300, -4])


@pytest.mark.parametrize("project", ["devices", "vectors"])
def test_programs_and_constants_with_mingw(windows, project, tmp_path):
    """Emulated devices with threads, programs in shared sections, and arrays in .incbin."""
    done = succeed("run", generate_project(project, tmp_path), "--host")
    assert "run returned 0" in done.stdout.replace("\r\n", "\n")


def test_elf_objects_are_refused(windows, tmp_path):
    need("llvmlite")
    found = fail("run", generate_project("minimal", tmp_path, metadata="llvm"), "--host").stderr
    assert "the metadata of the application is in ELF objects, which the linker of this machine does not read" in found
    assert "hint: generate with --metadata=c" in found


@pytest.mark.parametrize("target", ["aarch64-macos", pytest.param("x86_64-macos", marks=pytest.mark.whole)])
def test_programs_link_for_macos(target, tmp_path, monkeypatch):
    need("ziglang")
    app = generate_project("devices", tmp_path)
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc -target {target}")
    linked = []

    class NotRun(subprocess.Popen):
        def __init__(self, command, **options):
            is_application = Path(str(command[0])).name == "application"
            if is_application:
                linked.append(Path(command[0]).read_bytes()[:4])
            super().__init__(["true"] if is_application else command, **options)

    monkeypatch.setattr(subprocess, "Popen", NotRun)
    succeed("run", app, "--host")
    assert linked == [b"\xcf\xfa\xed\xfe"]
