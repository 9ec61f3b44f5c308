# SPDX-License-Identifier: Apache-2.0
"""Records of an image: invalid measurements, and the service of projects with variants."""

import json
from types import SimpleNamespace

import pytest
from board_support import failure
from golden_support import generate_project
from opwest.base.diagnostics import OpwestError
from opwest.runs.profile import make_measure, parse_measures
from opwest.runs.project_data import choose_model, project_record, selected_variant
from opwest.runs.services import write_services
from requirements_support import need

# --- Invalid measurements from an image

HEAD = "measures 2 1000 0 0"
RUN = "point 0 run m 65535 65535 4 9 1 9 20"
STEP = "point 1 step f 0 65535 4 9 1 9 20"


def test_complete_profile_responses():
    profile = parse_measures([HEAD, RUN, STEP])
    assert profile is not None
    assert [(one.kind, one.mean) for one in profile.measures] == [("run", 5.0), ("step", 5.0)]
    assert parse_measures([HEAD, "", RUN, " ", STEP]) == profile


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["measures 0 1000 0 0"],
        ["measures 2 -1 0 0", RUN, STEP],
        [HEAD, STEP.replace("1 step", "0 step"), STEP],
        [HEAD, RUN, STEP.replace(" 20", f" {'9' * 400}")],
        [HEAD, RUN, STEP.replace(" 20", f" {'9' * 5000}")],
        [HEAD, RUN, STEP.replace("0 65535", "0 -7")],
        [HEAD, RUN, STEP.replace(" f ", " \x1b[2Jf ")],
    ],
)
def test_invalid_profile_responses(lines):
    assert parse_measures(lines) is None


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        (("step", "f", 0, -7, 4, 9, 1, 9, 20), "a count is -7"),
        (("step", "f", 0, 0, 4, 9, 1, 9, 10**40), "a count is 1e+40"),
        (("step", "f", 0, 0, 4, 9, 1, 9, 10**400), "a count is infinite"),
        (("step", "\7", 0, 0, 4, 9, 1, 9, 20), r"invalid name: 'step' '\x07'"),
    ],
)
def test_reasons_for_invalid_measures(measure, reason):
    with pytest.raises(ValueError) as caught:
        make_measure(*measure)
    assert str(caught.value) == reason


def _link(answers):
    need("smpclient")
    from opwest.runs.smp import Answer, SmpLink

    link = SmpLink.__new__(SmpLink)
    link.device = "/dev/board"
    link._ask = lambda *_: Answer(answers.pop(0), "/dev/board", "what is asked")
    return link


def test_invalid_measures_over_smp():
    model = SimpleNamespace(index=0, name="m")
    head = {"points": 1, "hz": 1000, "used": 0, "stack": 0}
    point = {"kind": "run", "name": "m", "step": 65535, "device": 65535}
    point |= {"runs": 4, "last": 9, "min": 1, "max": 9, "total": 20}
    assert _link([head, point]).measures(model).measures[0].mean == 5.0
    found = failure(_link([{**head, "points": 0}]).measures, model)
    assert found.message == "/dev/board: invalid measurements of model 'm': the first point is not the whole run"
    found = failure(_link([head, {**point, "device": -1}]).measures, model)
    assert found.message == "/dev/board: invalid point 0 of model 'm': a count is -1"


# --- The service of projects with variants: a source for each, and the record of the variant in an image


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return generate_project("variants", tmp_path_factory.mktemp("variants"))


def test_each_variant_has_its_service(project, tmp_path):
    record = project_record(project)
    assert record is not None
    write_services(tmp_path, project, record)
    found = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.c")}
    assert found.keys() == {"adder_service.c", *(f"{name}/adder_service.c" for name in ("mla", "dsp", "mve"))}
    assert "fast" in found["dsp/adder_service.c"] and "fast" not in found["adder_service.c"]


def test_configuration_selects_the_record(project):
    record = project_record(project)
    assert record is not None
    base = choose_model(None, project, record)
    dsp = selected_variant(base, {"CONFIG_OPWEST_MODEL_ADDER_VARIANT_DSP": "y"})
    assert dsp["steps"] == ["widen", "add_packed"]
    assert selected_variant(base, {"CONFIG_OPWEST_MODEL_ADDER_BASE": "y"}) is base


@pytest.mark.parametrize(("key", "value"), [("variant", "../x"), ("variant", 1), ("tensors", None)])
def test_damaged_record_of_a_variant(tmp_path, key, value):
    project = generate_project("variants", tmp_path)
    lock = project / ".opwest" / "lock.json"
    content = json.loads(lock.read_text())
    content["record"]["models"][0]["variants"][1][key] = value
    lock.write_text(json.dumps(content))
    with pytest.raises(OpwestError, match="the lock is damaged"):
        project_record(project)
