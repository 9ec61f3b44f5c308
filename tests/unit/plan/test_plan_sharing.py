# SPDX-License-Identifier: Apache-2.0
"""Results in the memory of an argument: detection and verification."""

import projects
import pytest
from opwest.diagnostics import Diagnostics
from opwest.packing.problem import Block, Share
from opwest.plan.sharing import merged

SOURCE = """#include <stdint.h>
struct device;
int32_t op(const int8_t *x, int8_t *y);
int32_t op(const int8_t *x, int8_t *y)
{
	*y = *x;
	return 0;
}
int32_t two(const int8_t *x, const int8_t *z, int8_t *y);
int32_t two(const int8_t *x, const int8_t *z, int8_t *y)
{
	*y = (int8_t)(*x + *z);
	return 0;
}
int32_t start(const int8_t *x, int8_t *y, const struct device *dev);
int32_t start(const int8_t *x, int8_t *y, const struct device *dev)
{
	(void)dev;
	*y = *x;
	return 0;
}
"""


def places(work, steps, *, tensors="", inputs="x: {dtype: int8, shape: [64]}", constants="", planner="greedy"):
    """Plan steps with operators in place; return the offset of every buffer and the size of the pool."""
    data = "dtype: int8, shape: [64]"
    (work / "op.c").write_text(SOURCE)
    (work / "w.bin").write_bytes(bytes(64))
    (work / "manifest.yaml").write_text(
        "version: 1\nmodel: placed\nobjects: [{files: [op.c]}]\n"
        "devices: {left: {devicetree: {nodelabel: left}}, right: {devicetree: {nodelabel: right}}}\n"
        f"{constants}operators:\n"
        f"  op: {{args: [{{name: x, {data}}}, {{name: y, {data}, direction: out, in_place: [x]}}]}}\n"
        f"  two: {{args: [{{name: x, {data}}}, {{name: z, {data}}},"
        f" {{name: y, {data}, direction: out, in_place: [x]}}]}}\n"
        f"  start: {{device: {{}}, async: true, args: [{{name: x, {data}}},"
        f" {{name: y, {data}, direction: out, in_place: [x]}}]}}\n"
        f"run:\n  memory_planner: {planner}\n  inputs: {{{inputs}}}\n  outputs: {{y: {{{data}, external: true}}}}\n"
        f"{tensors}  steps:\n" + "".join(f"    - {{{step}}}\n" for step in steps)
    )
    ((model, plan),) = projects.check([work / "manifest.yaml"], Diagnostics())
    return {b.name: plan.place(b.name)[1] for b in model.buffers}, plan.pools["sram"].size


@pytest.mark.parametrize("planner", ["greedy", "search"])
def test_chain_in_place_needs_one_buffer(tmp_path, planner):
    steps = ["call: op, args: [x, a]", "call: op, args: [a, b]", "call: op, args: [b, c]", "call: op, args: [c, y]"]
    assert places(tmp_path, steps, planner=planner) == ({"a": 0, "b": 0, "c": 0}, 64)


def test_only_inputs_in_the_workspace_are_shared(tmp_path):
    steps = ["call: op, args: [x, a]", "call: op, args: [a, y]"]
    assert places(tmp_path, steps) == ({"a": 0}, 64)
    own = "x: {dtype: int8, shape: [64], external: false}"
    assert places(tmp_path, steps, inputs=own) == ({"a": 0, "x": 0}, 64)


def test_constants_are_unchanged(tmp_path):
    constants = "constants: {w: {file: w.bin, dtype: int8, shape: [64], pool: sram}}\nmemory: {sram: {}}\n"
    steps = ["call: two, args: [w, x, a]", "call: op, args: [a, y]"]
    assert places(tmp_path, steps, constants=constants)[1] == 128


def test_merged_blocks_have_the_largest_size_alignment_and_lifetime():
    blocks = [Block("a", 8, 4, 0, 2), Block("b", 6, 2, 2, 4), Block("c", 4, 8, 4, 9), Block("d", 1, 1, 0, 0)]
    whole, owner = merged(blocks, [Share("b", "c", 4), Share("a", "b", 2)])
    assert whole == [Block("a", 8, 8, 0, 9), Block("d", 1, 1, 0, 0)]
    assert owner == {"a": "a", "b": "a", "c": "a", "d": "d"}
    assert merged(blocks, []) == (blocks, {b.name: b.name for b in blocks})
