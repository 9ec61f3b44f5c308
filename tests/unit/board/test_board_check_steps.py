# SPDX-License-Identifier: Apache-2.0
"""Comparison after each step, over both transports, against boards emulated on pseudo terminals."""

import re

import numpy as np
import pytest
from board_support import QUIET, failure
from requirements_support import need

need("smpclient", "serial")

from fake_board import SHAPE, Model, server  # noqa: E402
from opwest.base.diagnostics import OpwestError  # noqa: E402
from opwest.runs.check_steps import Checked, Expected, check_steps, expected_results  # noqa: E402
from opwest.runs.compare import Tolerance, Tolerances  # noqa: E402
from opwest.runs.session import check_tensors, find_model  # noqa: E402

X = np.random.default_rng(7).integers(-8000, 8000, SHAPE, dtype=np.int16)


def stops_at(point, tensor="half"):
    return [{"point": point, "writes": [{"tensor": tensor, "step": 0}]}]


@pytest.fixture
def check(plug, connect, kind):

    def call(model, expected, tolerance=0.0):
        link = connect(kind, plug(server(kind, model)))
        served = find_model(link.describe(), "twice", link.device)
        tensors = [(t.role, t.name) for t in served.tensors]
        assert tensors == [("input", "x"), ("output", "y"), ("buffer", "half")]
        known = [{"role": role, "name": name, "dtype": "int16", "shape": list(SHAPE)} for role, name in tensors[:2]]
        check_tensors(served, known, link.device)
        tolerances = Tolerances({}, Tolerance(tolerance))
        return check_steps(link, served, {"x": X}, expected, tolerances=tolerances, progress=QUIET)

    return call


def expected(half=X, point=1):
    return Expected(stops_at(point), ["halve", "add"], {(point, "half"): half}, "those of the host")


def test_equal_results(check):
    model = Model(checks=True)
    checked = check(model, expected())
    assert checked.as_text() == "no difference in 1 of 2 steps: 1 result equals those of the host"
    counts = {"tensor_count": 1, "step_count": 1, "all_step_count": 2}
    assert checked.as_json() == {"first": None, **counts, "reference": "those of the host"}
    assert model.runs == 1 and not model.opened and model.point is None, "the run is completed"


def test_first_difference_is_named(check):
    other = X.copy()
    other[2, 7] -= 3
    other[1, 0] += 1
    model = Model(checks=True)
    checked = check(model, expected(other))
    assert checked.as_text() == (
        "step 0 (halve) differs: tensor half: 2 of 1500 elements differ from the reference: largest error 3 at [2, 7], "
        f"mean {4 / 1500:.6g}"
    )
    first = checked.as_json()["first"]
    assert (first["step"], first["operator"], first["tensor"]) == (0, "halve", "half")
    assert first["error"]["at"] == [2, 7]
    assert model.runs == 1 and not model.opened and model.point is None, "the run is completed"
    assert check(Model(checks=True), expected(other), 3.0).first is None
    assert check(Model(checks=True), expected(other), 2.9).first is not None


def test_failing_step(check):
    model = Model(checks=True, fails=True)
    found = failure(check, model, expected())
    assert found.message == "twice_run returned EIO in step 3 (double): the operator returned 77"
    assert not model.opened


def test_image_of_another_version(check):
    found = failure(check, Model(checks=True), expected(point=4))
    assert "the run of model 'twice' ended before point 4" in found.message
    other = Expected(stops_at(1, "other"), ["halve"], {(1, "other"): X}, "those of the host")
    assert "has no tensor 'other'" in failure(check, Model(checks=True), other).message
    found = failure(check, Model(checks=True), expected(X[0, :2])).message
    assert re.search(r"tensor 'half' of the image on '.*' has the shape \[3, 500\], expected \[2\]", found), found


def test_given_reference_is_the_final_content(tmp_path):
    stops = [
        {"point": 1, "writes": [{"tensor": "sum", "step": 0}]},
        {"point": 3, "writes": [{"tensor": "sum", "step": 1}, {"tensor": "half", "step": 1}]},
    ]
    model = {"steps": ["halve", "add"], "stops": stops, "views": []}
    found = expected_results(tmp_path, {}, model, {}, {"sum": X})
    assert found.values.keys() == {(3, "sum")}, "step 0 writes the sum too, with another content"
    assert found.source == "the given references"
    with pytest.raises(OpwestError, match="--check-steps cannot compare 'y': a later step may overwrite it"):
        expected_results(tmp_path, {}, model, {}, {"sum": X, "y": X})


def test_all_steps_are_compared():
    assert Checked(None, 3, 2, 2, "those of the host").as_text() == (
        "no difference in 2 steps: 3 results equal those of the host"
    )
