# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch in random configurations: files that torch wrote, against torch's own results.

`make torch-models` runs 30 configurations of each operator as exported, after decomposition and by each quantiser.
"""

import pytest
from campaign import sized
from models.bounds import ONNX
from pytorch.pytorch_support import CHOSEN, JOBS, check_files, programs

PARTS = range(sized(2, 40))
"""Of the operators: each part is one library of emitted C."""
LEAST = 60
"""Of operators."""


def bound(row):
    return ONNX[row["bound"]]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("form", ["plain", "decomposed"])
def test_float(form, part, tmp_path):
    folder, rows = programs(form)
    check_files(folder, rows[part :: len(PARTS)], tmp_path, bound)


def test_the_operators_are_those_of_the_files():
    _, rows = programs("plain")
    for row in rows:
        assert row["configurations"] == len(JOBS["plain"][0]["numbers"])
        assert set(row["wanted"].split("|")) & set(row["targets"]), row
    assert len({tuple(row["targets"]) for row in rows}) >= LEAST


@pytest.mark.parametrize("quantiser", CHOSEN)
def test_quantised_is_exact(quantiser, tmp_path):
    """With --exact the bits are torch's; without, the results have at most one step."""
    folder, rows = programs(quantiser)
    check_files(folder, rows, tmp_path / "exact", bound, exact=True)
    check_files(folder, rows, tmp_path / "fixed", bound, steps=1.0)
