# SPDX-License-Identifier: Apache-2.0
"""Without llvmlite: IR and --metadata=llvm result in one error with the package to install; the rest works."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from requirements_support import absent

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
# Imported by every Python on this path: simulates missing llvmlite.
BLOCKER = """
import sys


class Blocker:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "llvmlite":
            raise ModuleNotFoundError("No module named 'llvmlite'", name=name)
        return None


sys.meta_path.insert(0, Blocker)
"""


@pytest.fixture(scope="module")
def without_llvmlite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocker")
    (folder / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", "import llvmlite"], env=environment, capture_output=True, check=False)
    assert done.returncode == 1
    return environment


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A copy of the example with its operators compiled: the checkout has no objects before `make demo`."""
    folder = tmp_path_factory.mktemp("digits") / "example"
    shutil.copytree(DIGITS, folder, ignore=shutil.ignore_patterns("objects", "__pycache__"))
    done = subprocess.run(
        [sys.executable, folder / "compile_operators.py"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        absent(f"the operators do not compile here: {done.stderr}", "cc")
    return folder / "manifest.yaml"


def opwest(environment, *words):
    command = [sys.executable, "-m", "opwest", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def errors(done):
    return [line for line in done.stderr.splitlines() if "error: " in line]


def test_c_metadata_works(without_llvmlite, digits, tmp_path):
    done = opwest(without_llvmlite, "generate", digits, "-o", tmp_path / "app")
    assert (done.returncode, errors(done)) == (0, [])
    assert (tmp_path / "app" / "models" / "digits" / "src" / "digits_metadata.c").is_file()
    if shutil.which("cc"):
        done = opwest(without_llvmlite, "run", tmp_path / "app", "--host")
        assert done.returncode == 0, done.stderr
        assert "predictions: 360 of 360 equal the reference" in done.stdout


def test_other_commands_work(without_llvmlite, digits):
    for words in (["targets"], ["check", digits]):
        done = opwest(without_llvmlite, *words)
        assert (done.returncode, errors(done)) == (0, []), done.stderr


def test_metadata_llvm_is_one_error(without_llvmlite, digits, tmp_path):
    done = opwest(without_llvmlite, "generate", digits, "-o", tmp_path / "app", "--metadata=llvm")
    assert done.returncode == 1
    (error,) = errors(done)
    assert "--metadata=llvm" in error and "missing Python package llvmlite" in error
    assert "pip install llvmlite" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "app").exists()


@pytest.mark.parametrize("words", [["generate"], ["generate", "--metadata=llvm"], ["check"]], ids="-".join)
def test_ir_is_one_error_at_its_line(without_llvmlite, tmp_path, words):
    output = ["-o", tmp_path / "app"] if words[0] == "generate" else []
    done = opwest(without_llvmlite, *words, DIGITS / "manifest_ir.yaml", *output)
    assert done.returncode == 1
    (error,) = errors(done)
    lines = (DIGITS / "manifest_ir.yaml").read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "arg_max.ll" in text)
    assert f"manifest_ir.yaml:{line}:" in error and "missing Python package llvmlite" in error
    assert "pip install llvmlite" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "app").exists()


def test_json_has_the_same_error(without_llvmlite):
    done = opwest(without_llvmlite, "check", "--json", DIGITS / "manifest_ir.yaml")
    assert done.returncode == 1
    assert "pip install llvmlite" in json.dumps(json.loads(done.stdout or done.stderr))
