# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of this directory."""

import re
import shutil
from pathlib import Path

import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.manifest.located import Mapping
from opwest.manifest.yaml_reader import read_yaml

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples/digits"


def read(text: str) -> Mapping:
    """Return the data of YAML text without faults."""
    faults = Diagnostics()
    found = read_yaml(text.encode(), "m.yaml", faults)
    assert [str(f) for f in faults] == []
    assert found is not None
    return found


def faults_of(text: str | bytes) -> list[str]:
    faults = Diagnostics()
    read_yaml(text.encode() if isinstance(text, str) else text, "m.yaml", faults)
    return [str(f) for f in faults]


def copy_digits(folder: Path) -> Path:
    """Copy the digits example, with its operators as C sources: no compiled object is needed. Return the manifest."""
    for name in ("operators", "application"):
        shutil.copytree(DIGITS / name, folder / name)
    for file in ("parameters.npz", "vectors.npz"):
        shutil.copy(DIGITS / file, folder)
    sources = ", ".join(f"operators/{path.name}" for path in sorted((DIGITS / "operators").glob("*.c")))
    text = (DIGITS / "manifest.yaml").read_text(encoding="utf-8")
    text, count = re.subn(r"(?m)^objects:\n(  .*\n)+", f"objects:\n  - {{files: [{sources}]}}\n", text)
    assert count == 1
    manifest = folder / "manifest.yaml"
    manifest.write_text(text, encoding="utf-8")
    return manifest


def param(text: str, value: object) -> object:
    return pytest.param(text, value, id=text)
