# SPDX-License-Identifier: Apache-2.0
"""Whole networks of PyTorch, float and quantised by PT2E, against torch's own results.

`make torch-models` has all blocks of the networks, exported as they are and decomposed, and each quantiser.
"""

import pytest
from models.bounds import ONNX
from pytorch.pytorch_support import JOBS, check_files, programs

LEAST = 15
"""Of networks."""
FLOAT = [name for name in JOBS if name in ("networks", "networks-decomposed")]
QUANTISED = [name for name in JOBS if name.startswith("networks-") and name != "networks-decomposed"]


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
    check_files(folder, rows, tmp_path, bound, exact=True)
