# SPDX-License-Identifier: Apache-2.0
"""Comparison after each step, over both transports, against boards emulated on pseudo terminals."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from requirements_support import need

need("smpclient", "serial")

from fake_board import SHAPE, FakeBoard, Model, ShellBoard, SmpBoard  # noqa: E402
from opwest.board.check_steps import Checked, Expected, check_steps, expected_results  # noqa: E402
from opwest.board.link import LinkError  # noqa: E402
from opwest.board.progress import Progress  # noqa: E402
from opwest.board.session import check_tensors, find_model  # noqa: E402
from opwest.board.shell_link import ShellLink  # noqa: E402
from opwest.board.smp_link import SmpLink  # noqa: E402
from opwest.diagnostics import OpwestError  # noqa: E402
from opwest.host.compare import Tolerance, Tolerances  # noqa: E402

X = np.random.default_rng(7).integers(-8000, 8000, SHAPE, dtype=np.int16)
STOPS = [{"point": 1, "writes": [{"tensor": "half", "step": 0}]}]
both = pytest.mark.parametrize("kind", ["smp", "shell"])
Check = Callable[..., Checked]


@pytest.fixture
def check() -> Iterator[Check]:
    """Check a model on a fake board."""
    opened: list[FakeBoard | SmpLink | ShellLink] = []

    def call(kind: str, model: Model, expected: Expected, tolerance: float = 0.0) -> Checked:
        board = FakeBoard(SmpBoard(model) if kind == "smp" else ShellBoard(model))
        link = SmpLink(board.device, 115200, 3.0) if kind == "smp" else ShellLink(board.device, 3.0)
        opened.extend((link, board))
        served = find_model(link.describe(), "twice", link.device)
        tensors = [(t.role, t.name) for t in served.tensors]
        assert tensors == [("input", "x"), ("output", "y"), ("buffer", "half")]
        known = [{"role": role, "name": name, "dtype": "int16", "shape": SHAPE} for role, name in tensors[:2]]
        check_tensors(served, [{**t, "shape": list(SHAPE)} for t in known], link.device)
        tolerances = Tolerances({}, Tolerance(tolerance))
        return check_steps(link, served, {"x": X}, expected, tolerances=tolerances, progress=Progress(None))

    yield call
    for one in opened:
        one.disconnect() if hasattr(one, "disconnect") else one.close()


def expected(half: np.ndarray = X, stops: list = STOPS) -> Expected:
    point = stops[0]["point"]
    return Expected(stops, ["halve", "add"], {(point, "half"): half}, "those of the host")


@both
def test_equal_results(check: Check, kind: str) -> None:
    model = Model(checks=True)
    checked = check(kind, model, expected())
    assert checked.as_text() == "no difference in 1 of 2 steps: 1 result equals those of the host"
    assert checked.as_json() == {"first": None, "tensors": 1, "steps": 1, "of": 2, "reference": "those of the host"}
    assert model.runs == 1 and not model.opened and model.point is None, "the run is completed"


@both
def test_first_difference_is_named(check: Check, kind: str) -> None:
    other = X.copy()
    other[2, 7] -= 3
    other[1, 0] += 1
    model = Model(checks=True)
    checked = check(kind, model, expected(other))
    assert checked.as_text() == (
        "step 0 (halve) differs: tensor half: 2 of 1500 elements differ from the reference: largest error 3 at [2, 7], "
        f"mean {4 / 1500:.6g}"
    )
    first = checked.as_json()["first"]
    assert (first["step"], first["operator"], first["tensor"]) == (0, "halve", "half")
    assert first["error"]["at"] == [2, 7]
    assert model.runs == 1 and not model.opened and model.point is None, "the run is completed"
    assert check(kind, Model(checks=True), expected(other), 3.0).first is None
    assert check(kind, Model(checks=True), expected(other), 2.9).first is not None


@both
def test_failing_step(check: Check, kind: str) -> None:
    model = Model(checks=True, fails=True)
    with pytest.raises(LinkError) as caught:
        check(kind, model, expected())
    assert caught.value.message == "twice_run returned EIO in step 3 (double): the operator returned 77"
    assert not model.opened


@both
def test_image_of_another_version(check: Check, kind: str) -> None:
    with pytest.raises(LinkError, match="the run of model 'twice' ended before point 4"):
        check(kind, Model(checks=True), expected(stops=[{"point": 4, "writes": [{"tensor": "half", "step": 0}]}]))
    with pytest.raises(LinkError, match="has no tensor 'other'"):
        stops = [{"point": 1, "writes": [{"tensor": "other", "step": 0}]}]
        check(kind, Model(checks=True), Expected(stops, ["halve"], {(1, "other"): X}, "those of the host"))
    with pytest.raises(LinkError, match=r"tensor 'half' of the image on '.*' has the shape \[3, 500\], expected \[2\]"):
        check(kind, Model(checks=True), expected(X[0, :2]))


def test_given_reference_is_the_final_content(tmp_path: Path) -> None:
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


def test_all_steps_are_compared() -> None:
    assert Checked(None, 3, 2, 2, "those of the host").as_text() == (
        "no difference in 2 steps: 3 results equal those of the host"
    )
