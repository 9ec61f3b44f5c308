# SPDX-License-Identifier: Apache-2.0
"""Measured figures in the report, and its changes."""

import json
from dataclasses import replace

import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.render.tables.layout import NO_DEVICE, NO_STEP
from opwest.reports import data, timeline
from opwest.reports.changes import Change, compare
from opwest.reports.measured import add_measured
from opwest.reports.page import page
from opwest.runs.profile import make_measure, make_profile
from report_support import buffer, example, model, profile_json, report_of, results_json, step

# --- Reading of measurements of `opwest run`: both formats and their faults


@pytest.fixture(scope="module")
def models():
    return example().models


def read(models, tmp_path, *values):
    faults = Diagnostics()
    paths = []
    for index, value in enumerate(values):
        paths.append(tmp_path / f"m{index}.json")
        paths[-1].write_text(value if isinstance(value, str) else json.dumps(value))
    return add_measured(models, paths, faults)[0], [str(fault) for fault in faults]


def test_profile_is_read(models, tmp_path) -> None:
    found, faults = read(models, tmp_path, profile_json())
    (profile,) = found.profiles
    assert not faults and not found.results
    assert (profile.source, profile.where, profile.unit) == ("m0.json", "mps2/an385", "cycles")
    assert (profile.frequency_hz, profile.run.mean) == (25_000_000, 1000.0)
    assert [(p.kind, p.step, p.device) for p in profile.points] == [
        ("launch", 0, "npu1"),
        ("step", 2, None),
        ("wait", None, "npu1"),
        ("step", 8, None),
    ]
    assert (profile.stack_used, profile.stack_size) == (812, 4096)


@pytest.mark.parametrize(
    ("where", "more", "text"),
    [
        ("nucleo", {"clock": "board", "unit": "cycles"}, "cycles of the board"),
        ("native_sim", {"clock": "host", "unit": "ns"}, "host time of native_sim: it varies"),
        ("host", {"clock": "host", "unit": "ns"}, "host time of this machine: it varies"),
        ("mps2/an385", {"clock": "emulated", "unit": "ticks"}, "timer of QEMU: it varies"),
        (
            "mps2/an385",
            {"clock": "emulated", "unit": "instructions", "frequency_hz": 0},
            "instructions of several threads in QEMU: they vary",
        ),
        (
            "mps2/an385",
            {"clock": "counted", "unit": "instructions", "frequency_hz": 0, "modelled_processor": "Cortex-M3"},
            "instructions counted in QEMU; 1,500 cycles, modelled for a Cortex-M3 without wait states",
        ),
    ],
)
def test_page_shows_what_the_numbers_are(models, tmp_path, where, more, text) -> None:
    value = profile_json(where=where) | more
    value["points"][0]["modelled_cycles"] = 1500 if "modelled_processor" in more else None
    found, faults = read(models, tmp_path, value)
    assert not faults
    shown = page(report_of(found))
    assert text in shown
    assert ("1,000 instructions" in shown) == (more["unit"] == "instructions")


def test_results_are_read_with_the_profile_in_them(models, tmp_path) -> None:
    value = results_json()
    value["result"]["profile"] = profile_json()
    found, faults = read(models, tmp_path, value, profile_json(where="host"))
    assert not faults
    assert [p.where for p in found.profiles] == ["mps2/an385", "host"]
    (results,) = found.results
    assert (results.board, results.clock) == ("mps2/an385", "emulated")
    assert results.latency_ns == (2_000_000, 1_000_000, 3_000_000)
    assert [(e.name, e.differing, e.largest) for e in results.errors] == [("label", 2, 3.0)]
    value["result"]["errors"]["label"]["largest_error"] = "inf"
    assert read(models, tmp_path, value)[0].results[0].errors[0].largest is None


def test_measured_run_is_drawn_in_its_order(models, tmp_path) -> None:
    found, _ = read(models, tmp_path, profile_json())
    laid = timeline.lay_out_measured(found, found.profiles[0])
    assert laid.lanes == ("cpu", "npu0", "npu1")
    assert laid.length == 1000
    assert [(b.lane, b.first, b.end, b.kind) for b in laid.bars] == [
        (0, 0, 50, "launched"),
        (0, 50, 250, "run"),
        (0, 250, 850, "blocked"),
        (2, 50, 850, "pending"),
        (0, 850, 950, "run"),
    ]
    assert [(m.kind, m.at) for m in laid.marks] == [("launch", 0), ("wait", 850)]
    profile = found.profiles[0]  # its time needs a frequency
    assert timeline.measured_time(profile, 250) == "250 cycles (10.000 µs)"
    assert timeline.measured_time(replace(profile, frequency_hz=0), 250) == "250 cycles"
    assert timeline.measured_time(replace(profile, unit="ns"), 250) == "250 ns"


def test_profile_of_other_steps_causes_a_warning(models, tmp_path) -> None:
    value = profile_json()
    value["points"][2]["operator"] = "other"
    found, faults = read(models, tmp_path, value)
    assert found.profiles
    assert faults == [
        f"{tmp_path / 'm0.json'}: warning: the profile is from another version of model 'two_npus': it has step 2 "
        "(other), but step 2 is stretch\n  hint: measure again with 'opwest run --profile'"
    ]
    value["points"][2]["step"] = 9
    _, faults = read(models, tmp_path, value)
    assert "it has step 9 (other), but the model has no such step" in faults[0]


POINTS = profile_json()["points"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "profile format 2, expected 1"),
        ({"points": []}, "'points' is not a list of measurements"),
        ({"points": [{"kind": "step"}]}, "'runs' is not a count: None"),
        ({"where": None}, "'where' is not text"),
        ({"frequency_hz": -1}, "'frequency_hz' is not a count: -1"),
        ({"frequency_hz": True}, "'frequency_hz' is not a count: True"),
        ({"stack": {"used": 1}}, "'size' is not a count: None"),
        ({"points": POINTS[1:]}, "the first of 'points' is not the whole run"),
        ({"points": [{**POINTS[0], "mean": "NaN"}]}, "'mean' is not a time: 'NaN'"),
        ({"points": [{**POINTS[0], "steps": [-1]}]}, "'steps' of a point is not a list of steps"),
        ({"points": [*POINTS, {**POINTS[1], "device": None}]}, "'device' of a launch is empty or not text"),
        ({"points": [*POINTS, {**POINTS[3], "device": ""}]}, "'device' of a wait is empty or not text"),
    ],
)
def test_damaged_profiles_are_rejected(models, tmp_path, change, reason) -> None:
    found, faults = read(models, tmp_path, {**profile_json(), **change})
    assert not found.profiles
    assert faults == [
        f"{tmp_path / 'm0.json'}: error: cannot read the measurements: {reason}\n"
        "  expected: a file written by 'opwest run' with --json or --output-profile"
    ]


def test_all_faults_are_reported_together(models, tmp_path) -> None:
    failed = {"ok": False, "diagnostics": [], "result": None}
    wrong = results_json()
    wrong["result"]["latency_ns"] = ["1"]
    found, faults = read(models, tmp_path, "{", "[]", failed, wrong, profile_json("two_npu"))
    assert found == models[0]
    text = "\n".join(faults)
    assert len(faults) == 5
    for reason in (
        "not JSON",
        "not a JSON object",
        "neither a profile (kind: opwest-profile) nor the result of a successful run",
        "'latency_ns' is not a list of times",
        "measurements of unknown model 'two_npu'\n  hint: did you mean 'two_npus'?",
    ):
        assert reason in text
    faults = Diagnostics()
    add_measured(models, [tmp_path / "absent.json"], faults)
    assert "No such file or directory" in str(next(iter(faults)))


# --- The differences between two reports and their verdicts

BASE = model([buffer("a", 64, 0, 0, 1), buffer("b", 64, 64, 1, 2)], [step(i, f"op{i}") for i in range(3)])


def rows(before: data.Model, after: data.Model) -> dict[str, Change]:
    return {change.name: change for change in compare(report_of(before), report_of(after))}


def test_increased_memory_is_a_regression() -> None:
    grown = model([buffer("a", 96, 0, 0, 1), buffer("b", 64, 96, 1, 2)], list(BASE.steps))
    found = rows(BASE, grown)
    pool = found["pool sram, bytes"]
    assert (pool.group, pool.before, pool.after) == ("RAM", "128", "160")
    assert (pool.difference, pool.verdict) == ("+32 (+25.0 %)", "worse")
    assert found["buffer a, bytes"].verdict == "different"
    assert rows(grown, BASE)["pool sram, bytes"].verdict == "better"


def test_added_and_removed_items() -> None:
    constant = data.Constant("weights", "int8", (12,), 12, None, ("op0",))
    found = rows(BASE, replace(BASE, constants=(constant,)))
    assert (found["constant weights, bytes"].difference, found["constant weights, bytes"].after) == ("new", "12")
    assert found["constants, bytes"].verdict == "worse"
    assert rows(replace(BASE, constants=(constant,)), BASE)["constant weights, bytes"].difference == "gone"


def test_order_of_steps_has_no_verdict() -> None:
    turned = replace(BASE, steps=tuple(replace(s, operator=f"op{2 - s.index}") for s in BASE.steps))
    found = rows(BASE, turned)["order of the steps"]
    assert (found.before, found.after, found.verdict) == ("op0, op1, op2", "op2, op1, op0", "different")


def test_code_is_compared_for_the_targets_of_both() -> None:
    def compiled(target: str, size: int) -> data.Model:
        one = data.Object("op.o", "ELF object", target, "yes", (), size, 0, 0, "16")
        operators = tuple(replace(o, code={target: size}, stack={target: 16}) for o in BASE.operators[:1])
        return replace(BASE, objects=(one,), operators=operators)

    same = rows(compiled("cortex-m3", 100), compiled("cortex-m3", 90))
    assert same["op0, code for cortex-m3, bytes"].verdict == "better"
    other = rows(compiled("cortex-m3", 100), compiled("cortex-m7", 90))
    assert not any(change.group == "operators" for change in other.values())
    assert other["code for cortex-m3, bytes"].difference == "gone"


def test_measurements_are_compared_where_both_have_them() -> None:
    def measured(mean: float, where: str = "mps2/an385") -> data.Model:
        run = data.Point("run", None, (), None, None, 1, mean, mean, mean)
        one = data.Point("step", 0, (0,), "op0", None, 1, mean / 2, mean / 2, mean / 2)
        profile = data.Profile("p.json", where, "emulated", "cycles", 25_000_000, run, (one,), None, None)
        return replace(BASE, profiles=(profile,))

    found = rows(measured(1000), measured(1500))
    assert found["run on mps2/an385, cycles"].difference == "+500 (+50.0 %)"
    assert found["step 0: op0, on mps2/an385, cycles"].verdict == "worse"
    assert [c.name for c in compare(report_of(BASE), report_of(measured(1000)))] == ["profile of mps2/an385"]
    assert {c.difference for c in compare(report_of(measured(9)), report_of(measured(9, "host")))} == {"new", "gone"}


def test_added_and_removed_models() -> None:
    assert compare(example(), example()) == ()
    found = compare(report_of(BASE), report_of(replace(BASE, name="other")))
    assert [(c.model, c.group, c.difference) for c in found] == [("other", "model", "new"), ("made", "model", "gone")]


@pytest.mark.parametrize(("variant", "words"), [(None, "the base"), ("dsp", "variant 'dsp'")])
def test_measurements_name_the_variant(tmp_path, variant, words):
    """The member that `opwest run` writes; a file without it is of any variant."""
    profile = make_profile(0, 0, 0, [make_measure("run", "made", NO_STEP.value, NO_DEVICE.value, 1, 5, 5, 5, 5)])
    files = [tmp_path / "own.json", tmp_path / "any.json"]
    files[0].write_text(json.dumps(profile.labelled("made", "mps2/an386", "emulated", (), variant).as_json()))
    files[1].write_text(json.dumps(profile.labelled("made", "mps2/an386", "emulated", ()).as_json()))
    for shown in (None, "dsp", "mla"):
        faults = Diagnostics()
        (found,) = add_measured([replace(model([], []), variant=shown)], files, faults)
        errors = [fault.message.partition(" of model")[0] for fault in faults]
        assert errors == ([] if shown == variant else [f"the measurements are of {words}"])
        assert len(found.profiles) == (2 if shown == variant else 1)
