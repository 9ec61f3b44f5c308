# SPDX-License-Identifier: Apache-2.0
"""Whole networks of PyTorch, float and quantised by PT2E, against torch's own results.

`make torch-models` has all blocks of the networks, exported as they are and decomposed, and each quantiser.
"""

import pytest
from campaign import sized
from models.bounds import ONNX
from pytorch.pytorch_support import QUANTISERS, check_files, networks

LEAST = 15
"""Of networks."""
FORMS = sized([{}], [{}, {"decomposed": True}])
CHOSEN = sized(("*",), QUANTISERS)


def bound(row):
    return ONNX["network"]


@pytest.mark.parametrize("form", FORMS)
def test_float(form, tmp_path):
    folder, rows = networks(**form)
    assert len({row["network"] for row in rows}) >= LEAST
    check_files(folder, rows, tmp_path, bound)


@pytest.mark.parametrize("quantiser", CHOSEN)
@pytest.mark.parametrize("form", FORMS)
def test_quantised_is_exact(form, quantiser, tmp_path):
    """With --exact the bits are torch's; "*" is another quantiser for each network."""
    folder, rows = networks(quantiser, **form)
    check_files(folder, rows, tmp_path, bound, exact=True)
