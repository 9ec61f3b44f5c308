# SPDX-License-Identifier: Apache-2.0
"""The comparison of the operators of a model with those of a reference."""

from __future__ import annotations

import numpy as np
import pytest
from opwest.diagnostics import Location, OpwestError
from opwest.host.comparison import _difference

WHERE = (0, 4, "y")
PLACE = Location("m.onnx")


def refused(found, expected) -> str:
    with pytest.raises(OpwestError) as error:
        _difference(np.asarray(found, np.float32), np.asarray(expected, np.float32), WHERE, PLACE, None)
    return str(error.value)


def test_results_that_are_not_numbers() -> None:
    text = refused([np.nan, np.nan], [0, 0])
    assert "result 'y' of step 4 differs" in text and "2 of 2 values of input 0, by at most inf" in text
    assert "1 of 2 values of input 0, by at most inf" in refused([np.nan, 1], [0, 1])


@pytest.mark.parametrize("found", [1, -np.inf, np.nan])
def test_infinity_equals_only_itself(found) -> None:
    assert "1 of 2 values of input 0, by at most inf" in refused([found, 1], [np.inf, 1])


def test_limits() -> None:
    assert "1 of 1 values of input 0, by at most 0.5" in refused([100.5], [100])
    close = np.asarray([100.005], np.float32)
    assert 0.004 < _difference(close, np.asarray([100], np.float32), WHERE, PLACE, None) < 0.006


def test_equal_results() -> None:
    values = np.asarray([np.nan, np.inf, 1], np.float32)
    assert _difference(values, values, WHERE, PLACE, None) == 0
