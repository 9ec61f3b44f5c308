# SPDX-License-Identifier: Apache-2.0
"""The drawing of a model's graph: lines for all uses of tensors, boxes that do not overlap, kinds, links."""

import random
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from opwest.reports import data
from opwest.reports.graph import GAP, MAX_STEPS, graph_row, group_of, lay_out
from opwest.reports.page import page
from report_support import buffer, example, model, report_of, step


def made(*calls: tuple[str, str]) -> data.Model:
    steps = [
        replace(step(index, f"op{index}"), reads=tuple(reads.split()), writes=tuple(writes.split()))
        for index, (reads, writes) in enumerate(calls)
    ]
    names = {name for one in steps for name in one.writes} - {"y"}
    tensors = tuple(data.Tensor(name, role, "int8", (4,), 4, False) for name, role in (("x", "input"), ("y", "output")))
    return replace(model([buffer(name, 4, 0, 0, 1) for name in sorted(names)], steps), tensors=tensors)


def lines(of: data.Model) -> set[tuple[str, str, str]]:
    return {(edge.tensor, edge.way[0].key, edge.way[-1].key) for edge in lay_out(of).edges}


def test_lines_from_writers_to_readers() -> None:
    assert lines(made(("x w", "a"), ("a", "b"), ("a x", "c"), ("b c", "y"))) == {
        ("x", "in x", "step 0"),
        ("x", "in x", "step 2"),
        ("a", "step 0", "step 1"),
        ("a", "step 0", "step 2"),
        ("b", "step 1", "step 3"),
        ("c", "step 2", "step 3"),
        ("y", "step 3", "out y"),
    }


def test_a_tensor_that_is_changed_comes_from_the_last_step() -> None:
    found = lines(made(("x", "a"), ("a", "a"), ("a", "y")))
    assert {line for line in found if line[0] == "a"} == {("a", "step 0", "step 1"), ("a", "step 1", "step 2")}


def test_parts_of_a_tensor_come_from_all_of_their_steps() -> None:
    found = lines(made(("x", "a"), ("x", "a"), ("a", "y")))
    assert {line for line in found if line[0] == "a"} == {("a", "step 0", "step 2"), ("a", "step 1", "step 2")}


def test_states_are_at_both_ends() -> None:
    graph = made(("x s", "a"), ("a", "s"), ("a", "y"))
    graph = replace(graph, buffers=tuple(replace(b, role="state") if b.name == "s" else b for b in graph.buffers))
    assert {line for line in lines(graph) if line[0] == "s"} == {("s", "in s", "step 0"), ("s", "step 1", "out s")}


@pytest.mark.parametrize("seed", range(12))
def test_nothing_overlaps(seed: int) -> None:
    """Boxes of a rank have room, lines go down, and lines that pass a rank do not touch its boxes."""
    source = random.Random(seed)
    names, calls = ["x"], []
    for index in range(source.randrange(2, 40)):
        reads = source.sample(names[-6:], min(len(names), source.randrange(1, 4)))
        calls.append((" ".join(reads), f"t{index}"))
        names.append(f"t{index}")
    found = lay_out(made(*calls, (" ".join(names[-3:]), "y")))
    places = {node for edge in found.edges for node in edge.way} | set(found.nodes)
    ranks: dict[int, list] = {}
    for node in places:
        ranks.setdefault(node.rank, []).append(node)
    for rank in ranks.values():
        ordered = sorted(rank, key=lambda node: node.x)
        for one, other in pairwise(ordered):
            assert other.x - one.x >= (one.width + other.width) / 2 + GAP - 1e-6
    for edge in found.edges:
        assert [node.rank for node in edge.way] == list(range(edge.way[0].rank, edge.way[-1].rank + 1))
    for node in found.nodes:
        assert node.width / 2 <= node.x <= found.width - node.width / 2
        assert 0 <= node.y <= found.height - node.height


def test_a_chain_is_straight() -> None:
    found = lay_out(made(("x", "a"), ("a", "b"), ("b", "y")))
    assert len({node.x for node in found.nodes}) == 1


@pytest.mark.parametrize(
    ("kind", "colour"),
    [
        ("CONV_2D + ADD + RELU", "intermediate"),
        ("FULLY_CONNECTED", "intermediate"),
        ("MatMul", "intermediate"),
        ("AVERAGE_POOL_2D", "input"),
        ("SOFTMAX", "constant"),
        ("Relu", "constant"),
        ("ADD", "output"),
        ("PAD + CONV_2D", "intermediate"),
        ("PAD", "scratch"),
        ("CONCATENATION", "scratch"),
        ("beamform", "other"),
        ("Conv (transpose)", "scratch"),
        ("Conv (conv 2d) + RELU", "intermediate"),
        ("CONV_2D + CONV_2D … ADD (8)", "intermediate"),
    ],
)
def test_colours_of_kinds(kind: str, colour: str) -> None:
    assert group_of(kind)[0] == colour


def test_only_small_graphs_are_drawn() -> None:
    large = made(*[("x", f"t{i}") for i in range(MAX_STEPS + 1)])
    assert graph_row(large) is None
    assert f"more than {MAX_STEPS} steps is not drawn" in page(report_of(large))
    assert graph_row(model([], [])) is None


def test_boxes_link_to_the_table_and_name_devices() -> None:
    report = example()
    text = page(report)
    for one in report.models[0].steps:
        assert f'href="#model-1-layer-{one.index}"' in text
        assert f'<tr id="model-1-layer-{one.index}"' in text
    assert text.count("on npu1</text>") == 2
    assert "1×4×4×8" in re.sub("<[^>]*>", " ", text)
