# SPDX-License-Identifier: Apache-2.0
"""The packages of opwest, and the errors where the one of a single feature is missing.

`make test-without-packages` runs these tests in an environment without llvmlite, west and smpclient.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from opwest.base.packages import OF_FEATURES
from opwest.base.system import pip_command
from requirements_support import need
from small_models import generated, given, one_operator

ROOT = Path(__file__).resolve().parents[2]
OF_ONE_FEATURE = ("llvmlite", "smpclient", "west")
# Imported by every Python on its path: the modules of packages that only some features use are not found.
BLOCKER = f"""
import sys


class Blocker:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {sorted(OF_FEATURES)}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)
        return None


sys.meta_path.insert(0, Blocker)
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
def app(succeed, tmp_path):
    """Return a directory with a manifest, its operator and the generated project `app`."""
    source = "#include <stdint.h>\nint32_t copy(const int8_t *a, int8_t *b)\n{\n\tb[0] = a[0];\n\treturn 0;\n}\n"
    generated(succeed, tmp_path, one_operator("copy", "[{files: [copy.c]}]"), {"copy.c": source})
    return tmp_path


def test_everything_else_works_without_west(succeed, app, monkeypatch):
    """Without west and a workspace: check, inspect, generate, update, and a run on the host."""
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    monkeypatch.setenv("HOME", str(app))
    monkeypatch.setattr("opwest.runs.preflight.find_west", lambda workspace: None)
    for words in (["check", app / "manifest.yaml"], ["inspect", app / "copy.c"], ["update", app / "app"]):
        succeed(*words)
    succeed("run", app / "app", "--host")


def run_on(fail, app, board):
    done = fail("run", app / "app", "--board", board, *given(app, x=np.zeros(4, np.int8)))
    return done.err


def test_missing_west_is_one_error(fail, app, monkeypatch, tmp_path):
    base = tmp_path / "zephyrproject" / "zephyr"
    base.mkdir(parents=True)
    (base / "VERSION").write_text("VERSION_MAJOR = 4\nVERSION_MINOR = 2\nPATCHLEVEL = 0\n")
    monkeypatch.setenv("ZEPHYR_BASE", str(base))
    monkeypatch.setattr("opwest.runs.preflight.find_west", lambda workspace: None)
    monkeypatch.setattr("opwest.runs.preflight.tool_lacks", lambda *_, **__: ([], {}))
    message = "opwest: error: a build for board 'native_sim' lacks west\n  hint: run "
    assert run_on(fail, app, "native_sim") == f"{message}{pip_command(['west'])}\n"


def test_missing_smpclient_is_one_error(fail, app, monkeypatch):
    monkeypatch.setattr("opwest.runs.connection.importlib.util.find_spec", lambda name: None)
    found = run_on(fail, app, "mps2/an385")
    assert found.count("error:") == 1 and 'pip install "smpclient[serial]"' in found


@pytest.fixture
def minimal(tmp_path):
    """Return a function that runs opwest with the packages of docs/hosts.md only; it returns the finished process."""
    blocker = tmp_path / "blocker"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(blocker), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}

    def call(*words):
        command = [sys.executable, "-m", "opwest", *map(str, words)]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    return call


def test_page_lists_the_packages_that_all_features_need():
    """The command of docs/hosts.md names all dependencies but those of single features, and what they require."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    dependencies = names(line for line in lines if not line.startswith("#"))
    page = (ROOT / "docs/hosts.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^pip install --no-deps \./opwest (.*)$", page, re.MULTILINE)
    assert set(command.split()) == dependencies - set(OF_FEATURES.values()) | {"markupsafe"}


def test_operators_in_c_need_the_minimal_packages_only(minimal, tmp_path):
    need("cc")
    (tmp_path / "copy.c").write_text(
        "#include <stdint.h>\nint32_t copy(const int8_t a[2], int8_t b[2])\n{\n\tb[0] = a[1];\n\treturn 0;\n}\n"
    )
    for words in (
        ["init", "copy.c", "-o", "m.yaml"],
        ["check", "m.yaml"],
        ["generate", "m.yaml", "-o", "app"],
        ["run", "app"],
        ["update", "app"],
        ["inspect", "copy.c"],
        ["report", "app", "-o", "report.html"],
    ):
        done = minimal(*words)
        assert done.returncode == 0 and "error" not in done.stderr, (words, done.stdout, done.stderr)


def test_missing_package_is_one_error(minimal, app):
    np.save(app / "x.npy", np.zeros(4, np.int8))
    image = ["--input", f"x={app / 'x.npy'}"]
    for package, words in {
        "numpy": ["plan", app / "manifest.yaml"],
        " numpy": ["run", app / "app", *image],
        "argcomplete": ["completion", "bash"],
    }.items():
        done = minimal(*words)
        assert done.returncode == 1 and done.stderr.count("error:") == 1, done.stderr
        assert f"Python package {package.strip()}" in done.stderr and f"pip install {package.strip()}" in done.stderr
        assert "internal error" not in done.stderr
