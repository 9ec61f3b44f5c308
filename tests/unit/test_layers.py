# SPDX-License-Identifier: Apache-2.0
"""The source code: its layers, and calls that evaluate text."""

import ast
import importlib.util
import re
import shutil
from pathlib import Path

import pytest

# --- Imports, file access and the table in ARCHITECTURE.md agree with layers.toml

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "generator" / "opwest"

_spec = importlib.util.spec_from_file_location("layers", ROOT / "scripts" / "layers.py")
layers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(layers)


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "opwest", ignore=shutil.ignore_patterns("__pycache__", "_share"))
    return tmp_path


def plant(folder, module, line):
    """Add a line to a module of the package in a directory; other modules may be absent."""
    path = folder / "opwest" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{(PACKAGE / module).read_text()}\n{line}\n")


def test_imports_keep_the_contracts():
    status, printed = layers.lint(ROOT / "generator")
    assert status == 0, printed


def test_picture_and_table_are_made_from_the_layers():
    configured = layers.configuration()
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    made = layers.picture(configured) + layers.table(configured["packages"])
    assert layers.with_table(text, made) == text, "run python scripts/layers.py --write"


def test_every_layer_is_described():
    assert layers.undescribed(layers.configuration()) == []


@pytest.mark.slow
def test_files_are_accessed_where_the_table_allows_it():
    assert list(layers.file_faults(PACKAGE, layers.configuration()["packages"])) == []


def test_planted_imports_break_their_contracts(copy):
    plant(copy, "plan/greedy.py", "from opwest.project.request import Request")
    plant(copy, "render/tensors.py", "import contextvars")
    plant(copy, "model/types/dtypes.py", "from opwest.model.inputs import context")
    plant(copy, "objects/elf.py", "import llvmlite")
    plant(copy, "frontends/mlf/graph.py", "import tvm")
    plant(copy, "compiler/names.py", "import onnx")
    plant(copy, "runs/host.py", "import argparse")
    plant(copy, "compiler/reference/run.py", "from opwest.compiler.emission import depthwise")
    plant(copy, "frontends/vela/file.py", "from opwest.frontends.mlf import library")
    (copy / "opwest" / "novelty").mkdir()
    (copy / "opwest" / "novelty" / "__init__.py").write_text("")
    status, printed = layers.lint(copy)
    assert status == 1
    broken = [line.partition(" BROKEN")[0] for line in printed.splitlines() if " BROKEN" in line]
    assert broken == [one["name"] for one in layers.configuration()["tool"]["importlinter"]["contracts"]], printed
    for planted in (
        "opwest.plan.greedy -> opwest.project.request",
        "opwest.render.tensors -> contextvars",
        "opwest.model.types.dtypes -> opwest.model.inputs.context",
        "opwest.objects.elf -> llvmlite",
        "opwest.frontends.mlf.graph -> tvm",
        "opwest.compiler.names -> onnx",
        "opwest.compiler.reference.run -> opwest.compiler.emission.depthwise",
        "opwest.frontends.vela.file -> opwest.frontends.mlf.library",
        "novelty",  # a package without a layer
    ):
        assert planted in printed


@pytest.mark.parametrize(
    ("module", "line", "access"),
    [
        ("render/tensors.py", "Path('x').read_text()", "reads"),
        ("plan/memory.py", "open('x')", "reads"),
        ("model/readers/resolve.py", "Path('x').write_bytes(b'')", "writes"),
        ("objects/elf.py", "os.replace('x', 'y')", "writes"),
    ],
)
def test_planted_access_to_files_is_detected(tmp_path, module, line, access):
    plant(tmp_path, module, line)
    (fault,) = layers.file_faults(tmp_path / "opwest", layers.configuration()["packages"])
    assert fault.startswith(f"opwest/{module}:")
    assert fault.endswith(f"{access} files")


def test_text_methods_are_not_file_access(tmp_path):
    plant(tmp_path, "render/tensors.py", "'x'.replace('x', 'y')")
    assert list(layers.file_faults(tmp_path / "opwest", layers.configuration()["packages"])) == []


# --- opwest does not evaluate input, pass text to a shell, or unpickle

CALLS = {
    *("eval", "exec", "compile", "__import__"),
    *("os.system", "os.popen", "os.spawnl", "os.spawnv", "os.execl", "os.execlp", "subprocess.getoutput"),
    *("subprocess.getstatusoutput", "pickle.load", "pickle.loads", "marshal.loads", "shelve.open", "dill.loads"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "asyncio.create_subprocess_shell", "jinja2.Template"),
}
# `__init__` of opwest's own classes, from the names of their fields, as dataclasses does. The text for a shell.
SAFE = {"frozen_dataclass.py: exec()", "commands.py: shellcode(shell=options.shell)"}
KEYWORDS = {"shell": True, "allow_pickle": True}
SUSPECT = re.compile(rf"(?<![.\w])({'|'.join(map(re.escape, CALLS))})\(|({'|'.join(KEYWORDS)})=")
"""Files without a match are not parsed."""


def sources():
    found = [path for folder in ("generator", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert len(found) > 150
    return found


def faults(path):
    found = []
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if SUSPECT.search(text) else ():
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        safe = name == "yaml.load" and any(re.search("(Core|Safe)Loader", ast.unparse(one)) for one in given)
        found += [f"{name}()"] if name in CALLS and not safe else []
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg in KEYWORDS and not (isinstance(value, ast.Constant) and value.value is False):
                found.append(f"{name}({keyword.arg}={ast.unparse(value)})")
    return [f"{path.name}: {one}" for one in found]


def test_project_data_is_not_evaluated():
    assert {fault for path in sources() for fault in faults(path)} == SAFE
