# SPDX-License-Identifier: Apache-2.0
"""Names of C types in place of dtypes: the hint is the dtype of the type, not the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest
from opwest.cli.main import main
from opwest.manifest.schema import OF_C
from opwest.model.dtypes import DTYPES, dtype_of_c

MANIFEST = """\
version: 1
model: tiny
objects: [{{files: [f.c]}}]
operators: {{f: {{args: [{{name: y, dtype: {dtype}, shape: [1], direction: out}}]}}}}
run: {{inputs: {{}}, outputs: {{y: {{dtype: float32, shape: [1]}}}}, steps: [{{call: f, args: [y]}}]}}
"""


@pytest.mark.parametrize("name", OF_C)
def test_hint_is_the_dtype_of_the_type(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "f.c").write_text("void f(float *y)\n{\n\ty[0] = 0;\n}\n")
    (tmp_path / "manifest.yaml").write_text(MANIFEST.format(dtype=name))
    assert main(["check", str(tmp_path / "manifest.yaml")]) == 1
    assert f"hint: did you mean '{OF_C[name]}'?\n" in capsys.readouterr().err


def test_names_agree_with_those_of_c_sources() -> None:
    assert set(OF_C.values()) <= DTYPES.keys()
    for name, dtype in OF_C.items():
        known = dtype_of_c(name)
        assert known is None or known.name == dtype, name
