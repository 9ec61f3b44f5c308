# SPDX-License-Identifier: Apache-2.0
"""The difference between an output and its reference."""

from __future__ import annotations

import numpy as np
import pytest
from opwest.diagnostics import Diagnostics
from opwest.host.compare import Tolerance, Tolerances, difference, read_tolerances


def test_equal() -> None:
    found = difference(np.array([1, 2], np.int8), np.array([1, 2], np.int8))
    assert found.as_text() == "equal to the reference" and found.at is None


def test_position_of_the_largest_error() -> None:
    found = difference(np.array([[1, 2], [3, 4]], np.int8), np.array([[1, 2.5], [-100, 4]]))
    assert (found.elements, found.differing, found.largest, found.at) == (4, 2, 103, (1, 0))
    assert found.mean == (0.5 + 103) / 4
    assert found.as_text().startswith("2 of 4 elements differ from the reference: largest error 103 at [1, 0]")


def test_integers_beyond_double_precision() -> None:
    big = 2**63 - 1
    found = difference(np.array([big], np.int64), np.array([big - 1], np.int64))
    assert (found.differing, found.largest) == (1, 1)
    found = difference(np.array([2**64 - 1], np.uint64), np.array([-1], np.int64))
    assert found.largest == 2.0**64


def test_invalid_numbers() -> None:
    values = np.array([np.nan, np.inf, -np.inf, np.nan], np.float32)
    assert difference(values, values.copy()).differing == 0
    found = difference(values, np.array([np.nan, np.inf, np.inf, 1.0]))
    assert (found.differing, found.largest, found.at) == (2, np.inf, (2,))


def test_bool_and_scalars() -> None:
    assert difference(np.array([True, False]), np.array([True, True])).differing == 1
    assert difference(np.array(3, np.int8), np.array(5, np.int8)).largest == 2


@pytest.mark.parametrize(
    ("actual", "expected", "tolerance", "beyond"),
    [
        ([1.0, 2.0], [1.1, 2.3], Tolerance(0.2), 1),
        ([1.0, 2.0], [1.1, 2.3], Tolerance(0.0, 0.2), 0),
        ([100.0, -100.0], [110.0, -111.0], Tolerance(1.0, 0.0825), 1),
        ([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0], Tolerance(0.0), 0),
        ([np.nan, np.inf, 1.0, -np.inf], [1.0, 1.0, np.inf, np.inf], Tolerance(1e30, 1.0), 4),
    ],
)
def test_elements_beyond_the_tolerance(actual, expected, tolerance, beyond) -> None:
    found = difference(np.array(actual), np.array(expected), tolerance)
    assert found.beyond == beyond and found.as_json()["beyond_tolerance"] == beyond


def test_integers_and_tolerances() -> None:
    big = np.array([2**63 - 1, -(2**63)], np.int64)
    assert difference(big, np.array([2**63 - 3, -(2**63)], np.int64), Tolerance(1.0)).beyond == 1
    assert difference(big, np.array([2**63 - 3, -(2**63)], np.int64), Tolerance(2.0)).beyond == 0
    found = difference(np.array([1, 2], np.int8), np.array([1, 4], np.int8), Tolerance(1, 0.25))
    assert found.as_text().endswith("mean 1; all within the tolerance 1 + 0.25 * |reference|")
    assert (
        difference(np.array([1], np.int8), np.array([4], np.int8), Tolerance(1))
        .as_text()
        .endswith("mean 3; 1 beyond the tolerance 1")
    )


def test_tolerances_of_the_command_line_and_of_the_manifest() -> None:
    record = {"tolerances": [{"output": "y", "absolute": 3, "relative": 0.5}]}
    faults = Diagnostics()
    assert read_tolerances([], record, ["y", "z"], faults).of("y") == Tolerance(3, 0.5)
    assert read_tolerances([], record, ["y", "z"], faults).of("z") == Tolerance()
    found = read_tolerances(["z=.5,1e-3", "2"], record, ["y", "z"], faults)
    assert (found.of("z"), found.of("y")) == (Tolerance(0.5, 1e-3), Tolerance(2.0))
    assert read_tolerances(["0"], record, ["y"], faults).of("y") == Tolerance()
    assert isinstance(found, Tolerances) and not len(faults)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["x"], "invalid --tolerance 'x'"),
        (["-1"], "invalid --tolerance '-1'"),
        (["nan"], "invalid --tolerance 'nan'"),
        (["1e999"], "invalid --tolerance '1e999'"),
        (["y=1,2,3"], "invalid --tolerance 'y=1,2,3'"),
        (["1", "2"], "duplicate --tolerance '2' for all tensors"),
        (["y=1", "y=2"], "duplicate tolerance 'y'"),
        (["w=1"], "--tolerance has no effect: 'w' has no reference"),
        (["y=1", "z=1", "3"], "--tolerance for all tensors has no effect: each tensor has its own"),
    ],
)
def test_invalid_tolerances(given, message) -> None:
    faults = Diagnostics()
    read_tolerances(given, None, ["y", "z"], faults)
    assert [d.message for d in faults] == [message]


def test_a_tolerance_without_references_has_no_effect() -> None:
    faults = Diagnostics()
    read_tolerances(["1"], None, [], faults)
    assert [d.message for d in faults] == ["--tolerance has no effect: no tensor has a reference"]
