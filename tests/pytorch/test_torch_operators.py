# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch in random configurations: files that torch wrote, against torch's own results.

`make torch-models` runs 30 configurations of each operator as exported, after decomposition and by each quantiser.
"""

import pytest
from campaign import sized
from models.bounds import ONNX
from pytorch.pytorch_support import QUANTISERS, check_files, programs

PARTS = range(sized(2, 40))
"""Of the operators: each part is one library of emitted C."""
FORMS = {"plain": {"numbers": list(range(sized(1, 30)))}}
FORMS["decomposed"] = {"numbers": list(range(1, 1 + sized(1, 30))), "decomposed": True, "every": sized(3, 1)}
NUMBERS = list(range(sized(2, 30)))
CHOSEN = sized(("xnnpack-channel",), QUANTISERS)
LEAST = 60
"""Of operators."""


def bound(row):
    return ONNX[row["bound"]]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("form", FORMS)
def test_float(form, part, tmp_path):
    folder, rows = programs(form, {"operator": "*", **FORMS[form]})
    check_files(folder, rows[part :: len(PARTS)], tmp_path, bound)


def test_the_operators_are_those_of_the_files():
    _, rows = programs("plain", {"operator": "*", **FORMS["plain"]})
    for row in rows:
        assert row["configurations"] == len(FORMS["plain"]["numbers"])
        assert set(row["wanted"].split("|")) & set(row["targets"]), row
    assert len({tuple(row["targets"]) for row in rows}) >= LEAST


@pytest.mark.parametrize("quantiser", CHOSEN)
def test_quantised_is_exact(quantiser, tmp_path):
    """With --exact the bits are torch's; without, the results have at most one step."""
    folder, rows = programs(quantiser, {"operator": "*", "numbers": NUMBERS, "quantiser": quantiser})
    check_files(folder, rows, tmp_path / "exact", bound, exact=True)
    check_files(folder, rows, tmp_path / "fixed", bound, steps=1.0)
