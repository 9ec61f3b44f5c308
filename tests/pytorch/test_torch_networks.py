# SPDX-License-Identifier: Apache-2.0
"""Whole networks of PyTorch, float and quantised by PT2E, against torch's own results.

`make torch-models` has all blocks of the networks, exported as they are and decomposed, and each quantiser.
"""

import re

import pytest
from campaign import sized
from models.bounds import ONNX
from opwest.imports.convert import import_model
from pytorch.pytorch_support import JOBS, check_files, graph_of, programs

LEAST = 15
"""Of networks."""
FLOAT = [name for name in JOBS if name in ("networks", "networks-decomposed")]
QUANTISED = [name for name in JOBS if name.startswith("networks-") and name != "networks-decomposed"]

BETWEEN = ("tc_resnet-cortex-m", "mobilenet_v3-x86", "unet-x86")
"""With all blocks, one value of these comes next to a tie from a float32 operator between quantised ones, whose sums
have another order here: conv1d, which Cortex-M's quantiser leaves in float32; a global average of 144 elements, whose
exact mean is 40.4999998 steps and torch's 40.500004; conv_transpose2d. Each tool that computes them has another last
bit. They are imported, and not compared."""


def bound(row):
    return ONNX["network"]


@pytest.mark.parametrize("name", FLOAT)
def test_float(name, tmp_path):
    check_files(*programs(name), tmp_path, bound)


@pytest.mark.parametrize("name", QUANTISED)
def test_quantised_is_exact(name, tmp_path):
    """With --exact the bits are torch's; "any" has another quantiser for each network."""
    folder, rows = programs(name)
    assert len({row["network"] for row in rows}) >= LEAST
    out = [row for row in rows if _is_between(row)]
    assert len(out) <= len(BETWEEN)
    for row in out:
        graph_of(folder / f"{row['name']}.pt2", exact=True)
    check_files(folder, [row for row in rows if row not in out], tmp_path, bound, exact=True)


def _is_between(row):
    return sized(False, True) and row["name"].removesuffix("-decomposed") in BETWEEN


def test_state_of_a_network_with_variants(tmp_path):
    """Classes of processors copy an operand that the base writes in place: tensors have other numbers there."""
    folder, [row] = programs("streaming")
    import_model(folder / f"{row['name']}.pt2", tmp_path / "model")
    text = (tmp_path / "model" / "manifest.yaml").read_text()
    states = re.findall(r"^    (\w+): \{.*next: (\w+)\}$", text, re.MULTILINE)
    assert len(states) == 2 and all(following == f"{state}_next" for state, following in states), states
    assert "variants:" in text
