# SPDX-License-Identifier: Apache-2.0
"""The graph of steps, and the table of inputs and outputs."""

from __future__ import annotations

from dataclasses import replace

from opwest.report import data
from opwest.report.graph import MOST_STEPS, Edge, edges_of, graph_row
from opwest.report.page import page
from opwest.report.sizes import ram_rows
from report_support import buffer, example, model, report_of, step


def made(*calls: tuple[str, str]) -> data.Model:
    """Return a model with steps that read and write tensors."""
    steps = [
        replace(step(index, f"op{index}"), reads=tuple(reads.split()), writes=tuple(writes.split()))
        for index, (reads, writes) in enumerate(calls)
    ]
    names = {name for one in steps for name in one.writes} - {"y"}
    tensors = tuple(data.Tensor(name, role, "int8", (4,), 4, False) for name, role in (("x", "input"), ("y", "output")))
    return replace(model([buffer(name, 4, 0, 0, 1) for name in sorted(names)], steps), tensors=tensors)


def test_lines_from_writers_to_readers() -> None:
    found = edges_of(made(("x w", "a"), ("a", "b"), ("a x", "c"), ("b c", "y")))
    assert sorted(found, key=lambda edge: edge.name) == [
        Edge("a", "intermediate", 1, (1,), (2, 3)),
        Edge("b", "intermediate", 2, (2,), (4,)),
        Edge("c", "intermediate", 0, (3,), (4,)),
        Edge("x", "input", 0, (0,), (1, 3)),
        Edge("y", "output", 0, (4,), (5,)),
    ]


def test_lines_in_one_lane_do_not_overlap() -> None:
    steps = [(f"t{max(i - 3, 0)} t{i}" if i else "x", f"t{i + 1}") for i in range(30)]
    found = edges_of(made(*steps, ("t30", "y")))
    for one in found:
        for other in found:
            if one is not other and one.lane == other.lane:
                assert one.readers[-1] <= other.writers[0] or other.readers[-1] <= one.writers[0]


def test_a_tensor_that_a_step_updates_has_all_writers_and_readers() -> None:
    found = {edge.name: edge for edge in edges_of(made(("x", "a"), ("a", "a"), ("a", "y")))}
    assert (found["a"].writers, found["a"].readers) == ((1, 2), (2, 3))


def test_states_last_from_run_to_run() -> None:
    graph = made(("x s", "a"), ("a", "s"), ("a", "y"))
    graph = replace(graph, buffers=tuple(replace(b, role="state") if b.name == "s" else b for b in graph.buffers))
    (edge,) = [one for one in edges_of(graph) if one.name == "s"]
    assert (edge.role, edge.writers, edge.readers) == ("state", (0, 2), (1, 4))
    row = graph_row(graph)
    assert row is not None
    assert [(row["rows"][i]["label"], row["rows"][i]["detail"]) for i in (0, -1)] == [
        ("inputs and state", "x, s"),
        ("outputs and state", "y, s"),
    ]
    (pool,) = ram_rows(graph)
    assert pool["note"] == "no limit; 4 bytes of them state, kept between runs"


def test_large_graphs_are_not_drawn() -> None:
    large = made(*[("x", f"t{i}") for i in range(MOST_STEPS + 1)])
    assert graph_row(large) is None
    assert f"more than {MOST_STEPS} steps is not drawn" in page(report_of(large))
    assert graph_row(model([], [])) is None


def test_the_page_shows_the_graph_and_the_quantisation_of_inputs() -> None:
    shown = page(example())
    assert "7 add" in shown and "conv_weighed, dense_weighed → scores" in shown
    assert "real = 1 * (value - 0)" in shown
