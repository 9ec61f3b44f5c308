# SPDX-License-Identifier: Apache-2.0
"""`opwest bundle --check-steps`: results in the bundle, and results that are sent along in parts."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from fake_bundles import Bundles, FakeLink, Faults
from opwest.board.bundle_client import BundleClient
from opwest.board.bundle_link import Job
from opwest.board.bundle_steps import Expected, check_own, check_sent, expected_steps
from opwest.board.link import LinkError, ModelError
from opwest.board.progress import Progress
from opwest.diagnostics import Diagnostics, OpwestError
from opwest.model.dtypes import DTYPES
from opwest.render.bundle import StepResult

QUIET = Progress(None)
VARIANTS = Path(__file__).resolve().parents[2] / "golden" / "variants" / "manifest.yaml"
SENT = tuple(
    StepResult(point, step, buffer, DTYPES["int32"], bytes(range(200)) * 8)
    for point, step, buffer in ((1, 0, 0), (3, 2, 1))
)
HASH = hashlib.sha256(b"model0").hexdigest()
EXPECTED = Expected(HASH, SENT, ["conv", "pool", "dense"], ["a", "b"])


def client_of(bundles: Bundles, seed: int = 1) -> BundleClient:
    link = FakeLink(bundles, Faults(lose=0.1, repeat=0.1, late=0.1), seed)
    return BundleClient(lambda: link, session=seed, timeout=5.0, progress=QUIET, reconnects=False)


def test_results_in_the_bundle() -> None:
    found = {"operator": "conv", "tensor": "a", "step": 1, "element": 7, "count": 2}
    client = client_of(Bundles(answers={Job.STEPS: ("EILSEQ", found)}))
    checked = check_own(client)
    assert checked.as_text() == (
        "step 1 (conv) differs from those in the bundle: tensor a: 2 elements, the first one at index 7"
    )
    assert checked.as_json() == {"first": found, "reference": "those in the bundle"}
    checked = check_own(client_of(Bundles(answers={Job.STEPS: ("", {})})))
    assert (checked.as_text(), checked.as_json()["first"]) == ("no step differs from those in the bundle", None)


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        ("ENOTSUP", "the bundle contains no results of steps", "make it with --steps, or with --observable"),
        ("ENOENT", "the board has no model, or the model has no such step", ""),
        ("EIO", "the golden vector failed: EIO", ""),
    ],
)
def test_errors_of_the_board(error: str, message: str, hint: str) -> None:
    bundles = Bundles(answers={Job.STEPS: (error, {}), Job.PART: (error, {})})
    with pytest.raises(LinkError) as caught:
        check_own(client_of(bundles))
    assert caught.value.message == f"/dev/board: {message}" and hint in (caught.value.hint or "")
    with pytest.raises(LinkError) as caught:
        check_sent(client_of(bundles, 2), EXPECTED, QUIET)
    if error == "ENOTSUP":
        message = "the model on the board does not report the ends of its steps"
    assert caught.value.message == f"/dev/board: {message}"


def test_results_are_sent_in_parts_of_whole_elements() -> None:
    """The third part of the second result differs."""
    bundles = Bundles()
    seen: list[tuple[int, int, int, bytes]] = []
    do = bundles._do

    def compare(job: Job, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if job != Job.PART:
            return do(job, request)
        seen.append((request["point"], request["buffer"], request["off"], request["data"]))
        if (request["point"], request["off"]) == (3, 440):
            return "EILSEQ", {"operator": "pool", "tensor": "b", "step": 1, "element": 113, "count": 1}
        return "", {}

    bundles._do = compare  # type: ignore[method-assign]
    checked = check_sent(client_of(bundles), EXPECTED, QUIET)
    assert checked.as_text() == (
        "step 2 (dense) differs from those of this machine: tensor b: 1 element, the first one at index 113"
    )
    assert {len(data) for *_, data in seen} == {220, 1600 % 220}
    assert b"".join(data for point, _, _, data in seen if point == 1) == SENT[0].content
    assert [(point, buffer, offset) for point, buffer, offset, _ in seen[-3:]] == [(3, 1, 0), (3, 1, 220), (3, 1, 440)]


def test_unknown_variant() -> None:
    with pytest.raises(OpwestError) as caught:
        expected_steps(VARIANTS, "msp", Diagnostics())
    (found,) = caught.value.diagnostics
    assert found.message == "--variant: unknown variant 'msp'" and found.hint is not None and "'dsp'" in found.hint


def test_another_model_on_the_board() -> None:
    with pytest.raises(ModelError) as caught:
        check_sent(client_of(Bundles()), Expected("00" * 32, SENT, ["f"], ["a"]), QUIET)
    assert caught.value.message == (
        "/dev/board: the board runs another model or version of it: 'model0', hash "
        f"{HASH[:16]}, expected 0000000000000000"
    )
    assert caught.value.hint == "give the manifest of the installed bundle"
    with pytest.raises(ModelError, match="the board has no model"):
        check_sent(client_of(Bundles(verdicts=[(1, "no bundle", 0, 0, 0)] * 2)), EXPECTED, QUIET)
