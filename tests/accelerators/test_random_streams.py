# SPDX-License-Identifier: Apache-2.0
"""Streams of random models compute what run does, frame by frame.

The devices are threads that compute every step from the bytes that they read, after random delays. The drivers differ
in the depth of their queues, the cost of programs, and their optional hooks.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from accelerators_support import POSIX, PROGRAMS, SANITIZED, THREADED, build, generate_quickly, play
from campaign import sized
from device_models import CONTEXT
from opwest.render.c import stream
from stream_graphs import StreamGraph, write_players

FRAMES = 12
QUICK = ["-std=c11", "-O0", *POSIX]
BATCH = 8
"""The models of one program."""

DRIVERS = (
    "200 0 0 1",  # delay in us, depth, room that is not reported, switching: load
    "200 1 0 1",
    "200 2 0 1",
    "200 3 0 0",  # programs are free
    "200 0 1 1",  # -EAGAIN
    "200 0 3 0",
    "200 0 2 1 b",  # blocks
    "200 0 0 1 u",  # does not count its jobs
    "200 0 0 0 s",  # does not call back
    "200 2 1 1 sd",  # nothing can wake it
    "100 0 0 2 usd",  # a program is exclusive
    "0 0 0 0",
)


def graphs_from(first: int, count: int) -> list[StreamGraph]:
    """Return random models with launches."""
    found: list[StreamGraph] = []
    while len(found) < count:
        graph = StreamGraph(first, cached=first % 2 == 1)
        found += [graph] if graph.streams else []
        first += 1
    return found


def built(graphs: list[StreamGraph], work: Path, flags: Sequence[str], metadata: str = "c") -> Path:
    """Return a program that plays the models."""
    app = generate_quickly([graph.write(work / graph.name) for graph in graphs], work / "app", metadata=metadata)
    sources = [PROGRAMS / "stream_play.c", *CONTEXT]
    return build(app, work / "build", [*write_players(graphs, app, work / "players"), *sources], flags)


def played(program: Path, graph: StreamGraph, mode: str, seed: int, driver: str) -> tuple[str, dict[str, int]]:
    """Return the digests of all frames and of the state, and the counts of the driver."""
    text = play(program, "", graph.name, mode, str(FRAMES), str(seed), *driver.split())
    *digests, counts = text.splitlines()
    return "\n".join(digests), {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", counts)}


def compare(program: Path, graphs: list[StreamGraph], seeds: int) -> tuple[Counter[str], set[str]]:
    """Compare all models with all drivers; return the sums of the counts, and the models with other results."""
    totals: Counter[str] = Counter()
    wrong = set()
    for graph in graphs:
        expected, _ = played(program, graph, "run", 0, "0 0 0 0")
        assert len(set(expected.splitlines())) == FRAMES + 1, "all frames differ"
        for number, driver in enumerate(DRIVERS * seeds):
            digests, counts = played(program, graph, "stream", number, driver)
            wrong |= {graph.name} if digests != expected else set()
            totals.update(counts)
    return totals, wrong


# Compilation takes most of the time: 0.5 s a model.
@pytest.mark.parametrize(
    ("flags", "first", "metadata"),
    [
        pytest.param(SANITIZED, 0, "c", id="addresses"),
        pytest.param(THREADED, 1000, "c", id="threads"),
        pytest.param(SANITIZED, 2000, "llvm", id="llvm"),
    ],
)
def test_streams_equal_runs(flags, first, metadata, tmp_path, record_property):
    totals: Counter[str] = Counter()
    models = sized(4, 160)
    for start in range(0, models, BATCH):
        graphs = graphs_from(first + 2 * start, min(BATCH, models - start))
        counts, wrong = compare(built(graphs, tmp_path / str(start), flags, metadata), graphs, sized(1, 4))
        assert wrong == set()
        totals.update(counts)
    print(f"{models} models, {len(DRIVERS)} drivers: {totals}")
    for name, count in totals.items():
        record_property(name, count)
    assert totals["overlap"] > 10 * models, "frames overlap"
    assert totals["loads"] > 10 * models
    assert totals["full"] > models, "launches without room"


def test_streams_without_gates_are_wrong(tmp_path, monkeypatch):
    """The negative control: frames that use states in any order have other results."""
    monkeypatch.setattr(stream._Gates, "all", lambda self: [0] * len(self._listed))
    graphs = [graph for graph in graphs_from(0, sized(16, 60)) if graph.states][: sized(6, 30)]
    program = built(graphs, tmp_path, QUICK)
    wrong = {graph.name for graph in graphs if compare(program, [graph], 1)[1]}
    print(f"{len(wrong)} of {len(graphs)}")
    assert len(wrong) > len(graphs) // 4
