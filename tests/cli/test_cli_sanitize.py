# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host --sanitize`: generated code is clean, and faults of operators are reported."""

import json
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from golden_support import PROJECTS, generate_project
from opwest.cli.main import main
from opwest.model.dtypes import DTYPES
from opwest.model.elements import numbers_from
from requirements_support import need, need_compiler

TWO_NPUS = Path(__file__).resolve().parents[2] / "examples" / "two_npus" / "manifest.yaml"
NO_HOST_OBJECTS = ("targets",)
"""Projects with objects that a test wrote, which contain no code."""
SOME = ("devices", "many_kinds", "conventions")
"""tests/compile has the sanitizers for the generated applications of all projects."""
NO_DRIVER = {"asynchronous": "ready of device dsp returned -19"}
"""Projects with devices that the host does not emulate: only `open` runs."""
MANIFEST = """\
version: 1
model: wrong
objects: [{files: [wrong.c]}]
operators:
  wrong:
    returns: void
    args: [{name: x, dtype: int32, shape: [4]}, {name: y, dtype: int32, shape: [4], direction: out}]
run:
  inputs: {x: {dtype: int32, shape: [4]}}
  outputs: {y: {dtype: int32, shape: [4]}}
  steps: [{call: wrong, args: [x, y]}]
"""


def zeros(app: Path, folder: Path) -> list[tuple[str, list[str]]]:
    """Write inputs of zeros; return the models with the arguments of their inputs."""
    record = json.loads((app / ".opwest" / "lock.json").read_text())["record"]
    found = []
    for model in record["models"]:
        arguments = []
        for tensor in model["tensors"]:
            if tensor["role"] == "input":
                path = folder / f"{model['name']}_{tensor['name']}.npy"
                np.save(path, numbers_from(bytes(tensor["size"]), DTYPES[tensor["dtype"]], tensor["shape"]))
                arguments += ["--input", f"{tensor['name']}={path}"]
        found.append((model["name"], arguments))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", sized(SOME, [name for name in PROJECTS if name not in NO_HOST_OBJECTS]))
def test_code_of_golden_projects_is_clean(name: str, tmp_path: Path, opwest, monkeypatch: pytest.MonkeyPatch) -> None:
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    app = generate_project(name, tmp_path)
    monkeypatch.chdir(app.parent)  # operators are compiled again, by a command with paths relative to this directory
    for model, arguments in zeros(app, tmp_path):
        done = opwest(
            "run", app.name, "--host", "--sanitize", "--model", model, "--output-dir", tmp_path / "out", *arguments
        )
        assert "sanitizer" not in done.err
        assert (done.code, NO_DRIVER.get(name, "")) == (0, "") or NO_DRIVER[name] in done.err, done.err


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "example"), [("clang", "digits"), ("gcc", "two_npus")])
def test_examples_are_clean(compiler: str, example: str, digits, tmp_path: Path, opwest, monkeypatch) -> None:
    need_compiler(compiler, ("-fsanitize=address,undefined",), link=True)
    monkeypatch.setenv("CC", compiler)
    manifest = digits / "manifest.yaml" if example == "digits" else TWO_NPUS
    assert main(["generate", "-q", str(manifest), "-o", str(tmp_path / "app")]) == 0
    done = opwest("run", tmp_path / "app", "--host", "--sanitize")
    assert done.code == 0, done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y[0] = x[0] + 2147483647;", "runtime error: signed integer overflow"),
        ("y[0] = *(const int32_t *)((const char *)x + 1);", "runtime error: load of misaligned address"),
        ("for (volatile int i = 0; i < 9; i++) { y[i] = x[0]; }", "ERROR: AddressSanitizer: "),
    ],
)
def test_faults_of_operators_are_reported(body: str, message: str, tmp_path: Path, opwest) -> None:
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    (tmp_path / "wrong.c").write_text(
        f"#include <stdint.h>\nvoid wrong(const int32_t *x, int32_t *y)\n{{\n\ty[0] = 0;\n\t{body}\n}}\n"
    )
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    app = tmp_path / "app"
    assert opwest("generate", tmp_path / "manifest.yaml", "-o", app).code == 0
    np.save(tmp_path / "x.npy", np.full(4, 7, np.int32))
    done = opwest("run", app, "--host", "--sanitize", "--input", f"x={tmp_path / 'x.npy'}")
    assert done.code == 1 and "error: the sanitizer reported a fault:\n" in done.err and message in done.err, done.err
    assert "wrong.c" in done.err


def test_a_compiler_without_sanitizers(digits_app, tmp_path: Path, opwest, monkeypatch) -> None:
    need("cc")
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\ncase "$*" in *-fsanitize*) echo "unknown option" >&2; exit 1;; esac\nexec cc "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    done = opwest("run", digits_app, "--host", "--sanitize")
    assert done.code == 1
    assert "hint: --sanitize requires the sanitizers of the compiler" in done.err
