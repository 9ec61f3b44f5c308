# SPDX-License-Identifier: Apache-2.0
"""Planning of a whole model: pools one by one, and the message if one is too small."""

import projects
import pytest
from opwest.diagnostics import Diagnostics, OpwestError

SOURCE = """#include <stdint.h>
int32_t op(const int8_t *x, int8_t *y);
int32_t op(const int8_t *x, int8_t *y)
{
	*y = *x;
	return 0;
}
"""


def planned(work, memory, tensors="", size=100):
    """Return the plan of a chain of four tensors of `size` bytes."""
    (work / "op.c").write_text(SOURCE)
    shape = f"dtype: int8, shape: [{size}]"
    (work / "manifest.yaml").write_text(
        f"version: 1\nmodel: chained\nobjects: [{{files: [op.c]}}]\n{memory}\n"
        f"operators: {{op: {{args: [{{name: x, {shape}}}, {{name: y, {shape}, direction: out}}]}}}}\n"
        f"run:\n  inputs: {{x: {{{shape}}}}}\n  outputs: {{y: {{{shape}}}}}\n{tensors}"
        "  steps:\n    - {call: op, args: [x, a]}\n    - {call: op, args: [a, b]}\n"
        "    - {call: op, args: [b, c]}\n    - {call: op, args: [c, d]}\n    - {call: op, args: [d, y]}\n"
    )
    faults = Diagnostics()
    ((_, plan),) = projects.check([work / "manifest.yaml"], faults)
    return plan


def test_default_pool_is_as_large_as_needed(tmp_path):
    plan = planned(tmp_path, "")
    assert {name: pool.size for name, pool in plan.pools.items()} == {"sram": 208}
    assert plan.place("a") == plan.place("c") != plan.place("b")


def test_pools_are_planned_independently(tmp_path):
    memory = "memory: {one: {size: 1KiB}, two: {align: 64}, three: {size: 1}}"
    tensors = "  tensors: {b: {pool: two}, d: {align: 256}}\n"
    plan = planned(tmp_path, memory, tensors)
    assert list(plan.pools) == ["one", "two"]
    assert plan.pools["two"].size == 128 and plan.pools["two"].align == 64
    assert plan.pools["one"].align == 256 and plan.place("d")[1] % 256 == 0


@pytest.mark.parametrize(("size", "fits"), [("208", True), ("1KiB", True), ("207", False), ("1", False)])
def test_pool_that_is_too_small(tmp_path, size, fits):
    memory = f"memory: {{tight: {{size: {size}}}}}"
    if fits:
        assert planned(tmp_path, memory).pools["tight"].size == 208
        return
    with pytest.raises(OpwestError) as caught:
        planned(tmp_path, memory)
    (fault,) = caught.value.diagnostics
    assert fault.message == (
        f"pool 'tight' is too small: 208 bytes required, {size} available; live at the peak, step 1: a (104), b (104)"
    )
    assert fault.expected == "size: 208 or more"
    assert fault.location.line == 4
