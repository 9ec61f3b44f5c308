# SPDX-License-Identifier: Apache-2.0
"""opwest where Python lacks the modules and functions of POSIX, with encodings of Windows.

This is a simulation on Linux (without_posix/sitecustomize.py), not Windows.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from golden_support import generate_quickly
from requirements_support import need

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


IMPORTS = """
import importlib, importlib.util, pkgutil, opwest
count = 0
for found in pkgutil.walk_packages(opwest.__path__, "opwest."):
    try:
        importlib.import_module(found.name)
        count += 1
    except ModuleNotFoundError as error:
        root = (error.name or "").split(".")[0]
        if root in ("", "opwest") or root in {blocked!r} or importlib.util.find_spec(root) is not None:
            raise
        print("not installed:", root)
print(count)
"""
BLOCKED = ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource")


def run(*words, encoding="utf-8", check=True, **variables):
    """Run Python without POSIX; text without an encoding is an error."""
    env = {
        **os.environ,
        "PYTHONPATH": str(HERE / "without_posix"),
        "PYTHONIOENCODING": encoding,
        "PYTHONWARNDEFAULTENCODING": "1",
        **variables,
    }
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, env=env, capture_output=True, check=False)
    for text in (b"Traceback", b"internal error", b"EncodingWarning: "):
        assert text not in done.stderr, done.stderr.decode()
    if check:
        assert done.returncode == 0, done.stderr.decode()
    return done


def test_the_modules_are_blocked():
    done = run("-c", f"import os\nfor name in {BLOCKED}:\n try: __import__(name)\n except ImportError: print(name)")
    assert done.stdout.decode().split() == list(BLOCKED)


@pytest.mark.slow
def test_every_module_can_be_imported():
    done = run("-c", IMPORTS.format(blocked=BLOCKED), OPWEST_IMPORT_ALL="1")
    lines = done.stdout.decode().splitlines()
    modules = [path for path in (ROOT / "generator" / "opwest").rglob("*.py") if "_share" not in path.parts]
    assert int(lines[-1]) + len(lines) == len(modules), "each is imported, or lacks a package that is not installed"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("without posix")
    shutil.copytree(ROOT / "tests" / "golden" / "minimal", folder / "minimal")
    run("-m", "opwest", "check", folder / "minimal" / "manifest.yaml")
    run("-m", "opwest", "generate", folder / "minimal" / "manifest.yaml", "-o", folder / "app")
    return folder


def test_generated_files_are_those_of_every_host(project):
    expected = generate_quickly(
        [ROOT / "tests" / "golden" / "minimal" / "manifest.yaml"], project / "expected", vendored=True
    )
    found = sorted(p.relative_to(expected) for p in expected.rglob("*") if p.is_file() and ".opwest" not in p.parts)
    assert found
    for path in found:
        assert (project / "app" / path).read_bytes() == (expected / path).read_bytes(), path
    for path in (project / "app").rglob("*"):
        assert not path.is_file() or b"\r" not in path.read_bytes(), path


@pytest.mark.slow
def test_update_of_an_edited_manifest(project):
    manifest = project / "minimal" / "manifest.yaml"
    manifest.write_bytes(manifest.read_bytes() + b"# edited\n")
    run("-m", "opwest", "update", project / "app")
    (project / "app" / "src" / "main.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    run("-m", "opwest", "update", project / "app")
    assert "opwest update" not in run("-m", "opwest", "update", project / "app", "--check").stderr.decode()


@pytest.mark.slow
def test_run_on_the_host(project):
    need("cc")
    np.save(project / "x.npy", np.array([1, -2, 300, 4], dtype="int16"))
    done = run("-m", "opwest", "run", project / "app", "--host", "--input", f"x={project / 'x.npy'}")
    assert done.stdout.decode().split(":")[0] == "y" and b"-300" in done.stdout


@pytest.mark.parametrize(
    "encoding", ["cp1252", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cp437", "ascii"))]
)
def test_consoles_that_lack_characters(project, encoding):
    """A message has escapes for characters that the console lacks."""
    folder = project / f"{encoding} 模型 ü"
    folder.mkdir()
    place = folder / "manifest.yaml"
    place.write_text("opwest: 1\nmodel: {name: m, описание: ü}\n", encoding="utf-8")
    done = run("-m", "opwest", "check", place, encoding=encoding, check=False)
    assert done.returncode == 1
    text = done.stderr.decode(encoding)
    assert "error: " in text and "\\u" in text
    assert run("-m", "opwest", "check", place, "--json", encoding=encoding, check=False).returncode == 1
