# SPDX-License-Identifier: Apache-2.0
"""The packages of opwest, and the errors where the one of a single feature is missing.

`make test-without-packages` runs these tests in an environment without llvmlite, west and smpclient.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
OF_ONE_FEATURE = ("llvmlite", "smpclient", "west")
MANIFEST = """\
version: 1
model: tiny
objects: [{files: [copy.c]}]
operators:
  copy: {args: [{name: a, dtype: int8, shape: [4]}, {name: b, dtype: int8, shape: [4], direction: out}]}
run:
  inputs: {x: {dtype: int8, shape: [4]}}
  outputs: {y: {dtype: int8, shape: [4]}}
  steps: [{call: copy, args: [x, y]}]
"""


def names(lines):
    return {re.split(r"[^A-Za-z0-9_.-]", line.strip(), maxsplit=1)[0] for line in lines if line.strip()}


def test_requirements_of_the_module_are_the_dependencies_of_the_package():
    """`west packages pip` installs in a workspace what pip installs elsewhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert sorted(lines) == sorted(project["dependencies"])
    assert set(OF_ONE_FEATURE) <= names(lines)
    assert "requirements.txt" in (ROOT / "zephyr/module.yml").read_text()
    assert {"llvm", "board"}.isdisjoint(project["optional-dependencies"])


def test_requirements_without_packages():
    command = [sys.executable, ROOT / "scripts/requirements.py", "--extra", "test", "--without", *OF_ONE_FEATURE]
    found = names(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    assert {"numpy", "pytest", "tree-sitter-c"} <= found and found.isdisjoint(OF_ONE_FEATURE)


@pytest.fixture
def app(opwest, tmp_path):
    """Return a directory with a manifest, its operator, an input and the generated project `app`."""
    source = "#include <stdint.h>\nint32_t copy(const int8_t *a, int8_t *b)\n{\n\tb[0] = a[0];\n\treturn 0;\n}\n"
    (tmp_path / "copy.c").write_text(source)
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    np.save(tmp_path / "x.npy", np.zeros(4, np.int8))
    assert opwest("generate", tmp_path / "manifest.yaml", "-o", tmp_path / "app").code == 0
    return tmp_path


def test_everything_else_works_without_west(opwest, app, monkeypatch, tmp_path):
    """Without west and a workspace: check, inspect, generate, update, and a run on the host."""
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("opwest.board.connection.find_west", lambda workspace: None)
    assert opwest("check", app / "manifest.yaml").code == 0
    assert opwest("inspect", app / "copy.c").code == 0
    assert opwest("update", app / "app").code == 0
    done = opwest("run", app / "app", "--host")
    assert done.code == 0, done.err


def test_missing_west_is_one_error(opwest, app, monkeypatch, tmp_path):
    base = tmp_path / "zephyrproject" / "zephyr"
    base.mkdir(parents=True)
    (base / "VERSION").write_text("VERSION_MAJOR = 4\nVERSION_MINOR = 2\nPATCHLEVEL = 0\n")
    monkeypatch.setenv("ZEPHYR_BASE", str(base))
    monkeypatch.setattr("opwest.board.connection.find_west", lambda workspace: None)
    monkeypatch.setattr("opwest.board.connection.missing_tools", list)
    done = opwest("run", app / "app", "--board", "native_sim", "--input", f"x={app / 'x.npy'}")
    assert done.code == 1
    assert done.err == f"opwest: error: missing tools for Zephyr in '{base}': west\n  hint: run pip install west\n"


def test_missing_smpclient_is_one_error(opwest, app, monkeypatch):
    monkeypatch.setattr("opwest.board.connection.importlib.util.find_spec", lambda name: None)
    done = opwest("run", app / "app", "--board", "mps2/an385", "--input", f"x={app / 'x.npy'}")
    assert done.code == 1 and done.err.count("error:") == 1 and 'pip install "smpclient[serial]"' in done.err
