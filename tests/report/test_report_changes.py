# SPDX-License-Identifier: Apache-2.0
"""The differences between two reports and their verdicts."""

from __future__ import annotations

from dataclasses import replace

from opwest.report import data
from opwest.report.changes import Change, compare
from report_support import buffer, example, model, report_of, step

BASE = model([buffer("a", 64, 0, 0, 1), buffer("b", 64, 64, 1, 2)], [step(i, f"op{i}") for i in range(3)])


def rows(before: data.Model, after: data.Model) -> dict[str, Change]:
    return {change.name: change for change in compare(report_of(before), report_of(after))}


def test_report_is_equal_to_itself() -> None:
    assert compare(example(), example()) == ()


def test_increased_memory_is_a_regression() -> None:
    grown = model([buffer("a", 96, 0, 0, 1), buffer("b", 64, 96, 1, 2)], list(BASE.steps))
    found = rows(BASE, grown)
    pool = found["pool sram, bytes"]
    assert (pool.group, pool.before, pool.after, pool.difference, pool.verdict) == (
        "RAM",
        "128",
        "160",
        "+32 (+25.0 %)",
        "worse",
    )
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

    assert rows(compiled("cortex-m3", 100), compiled("cortex-m3", 90))["op0, code for cortex-m3, bytes"].verdict == (
        "better"
    )
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
    found = compare(report_of(BASE), report_of(replace(BASE, name="other")))
    assert [(c.model, c.group, c.difference) for c in found] == [("other", "model", "new"), ("made", "model", "gone")]
