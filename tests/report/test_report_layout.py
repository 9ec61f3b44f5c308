# SPDX-License-Identifier: Apache-2.0
"""The layout of the report: charts and graphs."""

from dataclasses import replace
from itertools import pairwise

import pytest
from golden_support import PROJECTS, copy_project
from hypothesis import given, settings
from hypothesis import strategies as st
from opwest.reports import data, figures, memory_map, timeline, words
from opwest.reports.collect import collect, take_over
from opwest.reports.figures import HEAD, MAP_HEIGHT, map_row, part, timeline_rows
from opwest.reports.memory_map import live_bytes
from opwest.reports.page import page
from opwest.reports.sizes import ram_rows
from report_support import buffer, examined, example, model, step

# --- Geometry: the drawing equals the plan


def in_use(buffers: list[data.Buffer], index: int) -> int:
    """Return the bytes in use in a step, byte by byte."""
    alive = [b for b in buffers if b.first <= index <= b.last]
    return len({byte for b in alive for byte in range(b.offset, b.offset + b.reserved)})


def test_rectangles_are_the_plan() -> None:
    found = example().models[0]
    laid = memory_map.lay_out(found, found.pools[0])
    assert len(laid.buffers) == len(found.buffers) == 9
    for one, place in laid.buffers:
        assert place.x * 9 == pytest.approx(one.first)
        assert place.width * 9 == pytest.approx(one.last - one.first + 1)
        assert (1 - place.y - place.height) * 320 == pytest.approx(one.offset)
        assert place.height * 320 == pytest.approx(one.reserved)
    assert laid.bound == 0
    assert laid.peak.x * 9 == pytest.approx(4)
    for index in range(9):
        middle = (index + 0.5) / 9
        height = sum(r.height for r in laid.live if r.x <= middle < r.x + r.width)
        assert height * 320 == pytest.approx(sum(b.reserved for b in found.buffers if b.first <= index <= b.last))


@pytest.mark.parametrize("name", PROJECTS)
def test_report_equals_the_plan(name, tmp_path) -> None:
    for path in copy_project(name, tmp_path / "source"):
        one = examined(path)
        found = collect(one)
        assert [p.name for p in found.pools] == list(one.plan.pools)
        for pool in found.pools:
            planned = one.plan.pools[pool.name]
            assert (pool.planned, pool.lower_bound) == (planned.size, planned.lower_bound)
            held = [b for b in found.buffers if b.pool == pool.name]
            used = [in_use(held, index) for index in range(len(found.steps))]
            assert (pool.peak.bytes, pool.peak.step) == (max(used), used.index(max(used)))
            if not any(b.takes_over for b in held):
                assert pool.peak.bytes == pool.lower_bound
            assert {b.name: b.offset for b in held} == dict(planned.offsets)
            assert max(b.offset + b.reserved for b in held) == pool.planned
        lives = {b.name: one.plan.schedule.lives[b.name] for b in one.model.buffers}
        planned = {name: (life.first, life.last) for name, life in lives.items() if life}
        assert {b.name: (b.first, b.last) for b in found.buffers} == planned
        steps = [(s.operator.name, s.device) for s in one.plan.schedule.steps]
        assert [(s.operator, s.device) for s in found.steps] == steps


boxes = st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 9), st.integers(0, 9))


@given(st.lists(boxes, max_size=25))
@settings(deadline=None, max_examples=150)
def test_memory_that_buffers_share_counts_once(drawn) -> None:
    held = [buffer(f"b{i}", size, at, *sorted(life)) for i, (at, size, *life) in enumerate(drawn)]
    assert live_bytes(held, 10) == [in_use(held, index) for index in range(10)]


def test_results_in_place_of_arguments() -> None:
    held = [buffer("a", 64, 0, 0, 2), buffer("b", 32, 16, 2, 4), buffer("c", 16, 64, 2, 3), buffer("d", 64, 0, 5, 6)]
    found = {b.name: b for b in take_over(held)}
    assert {name: b.takes_over for name, b in found.items()} == {"a": None, "b": "a", "c": None, "d": None}
    steps = [step(i, "op") for i in range(7)]
    made = model(list(found.values()), steps)
    assert "in place of a" in words.buffer(made, found["b"])
    rows = {row["name"]: row for row in map_row(made, made.pools[0])["items"]}
    middles = {name: {label["x"] for label in row["labels"]} for name, row in rows.items()}
    assert middles["a"] == {part(2 / 2 / 7)}  # of the two visible steps
    assert middles["d"] == {part(6 / 7)}


def test_pool_with_more_buffers_than_are_drawn() -> None:
    count = memory_map.MAX_BUFFERS + 25
    large = buffer("large", 5000, 0, 0, 3)
    many = [buffer(f"b{i}", 8, 5000 + 8 * i, i % 4, i % 4) for i in range(count)]
    found = model([*many, large], [step(i, "op") for i in range(4)])
    laid = memory_map.lay_out(found, found.pools[0])
    assert len(laid.buffers) == memory_map.MAX_BUFFERS
    assert len(laid.others) == 26
    assert "large" in {one.name for one, _ in laid.buffers}
    row = map_row(found, found.pools[0])
    assert row["others_count"] == 26
    assert row["others"][0]["path"].count("M") == 26


def test_long_model_has_few_bars_of_live_bytes() -> None:
    steps = 10_000
    found = model([buffer(f"b{i}", 8 + i % 3, 0, i, i) for i in range(steps)], [step(i, "op") for i in range(steps)])
    laid = memory_map.lay_out(found, found.pools[0])
    assert len(laid.live) <= memory_map.MAX_LIVE
    assert max(r.height for r in laid.live) == pytest.approx(1)
    assert len(laid.times) <= memory_map.MAX_TICKS


@pytest.mark.parametrize("size", [1, 2, 7, 320, 1023, 1024, 16_000, 1 << 20, (1 << 31) - 1])
def test_size_ticks_are_round_and_spaced(size) -> None:
    ticks = memory_map.size_ticks(size)
    assert 1 <= len(ticks) <= 6
    assert ticks[0].label == "0"
    places = [tick.at for tick in ticks] + [0.0]
    assert all(before - after > 0.05 for before, after in pairwise(places))


@pytest.mark.parametrize("steps", [1, 2, 16, 17, 100, 999, 10_000, 123_456])
def test_step_ticks_are_centred(steps) -> None:
    ticks = memory_map.step_ticks(steps)
    assert 1 <= len(ticks) <= memory_map.MAX_TICKS
    assert [round(tick.at * steps - 0.5) for tick in ticks] == [int(tick.label.replace(",", "")) for tick in ticks]


def test_lower_bound_is_drawn_where_the_plan_needs_more() -> None:
    found = model([buffer("a", 60, 0, 0, 1), buffer("b", 40, 60, 1, 2)], [step(i, "op") for i in range(3)])
    assert map_row(found, found.pools[0])["bound"] is None
    pool = data.Pool("sram", 200, 100, 8, None, data.Peak(1, 100))
    assert map_row(found, pool)["bound"] == str(HEAD + MAP_HEIGHT // 2)
    assert map_row(found, replace(pool, limit=120))["pool"].limit == 120


def test_launch_ends_at_the_next_launch_or_wait() -> None:
    laid = timeline.lay_out(example().models[0])
    assert laid.lanes == ("cpu", "npu0", "npu1")
    assert {(b.lane, b.first, b.end, b.kind, b.label) for b in laid.bars} >= {
        (2, 0, 1, "launched", "hidden_features"),
        (2, 1, 2, "launched", "hidden_scores"),
        (2, 2, 6, "pending", ""),
        (1, 3, 4, "launched", "conv_features"),
        (0, 2, 3, "run", "stretch"),
    }
    assert [(m.kind, m.lane, m.at) for m in laid.marks if m.kind == "wait"] == [("wait", 1, 5), ("wait", 2, 6)]


def test_narrow_screens_have_taller_lanes_for_vertical_names() -> None:
    wide, narrow = timeline_rows(example().models[0])
    assert (wide["classes"], narrow["classes"]) == ("wide", "narrow")
    assert narrow["lane"] > wide["lane"] and [b["name"] for b in narrow["bars"]] == [b["name"] for b in wide["bars"]]
    names = {label["text"] for bar in narrow["bars"] for label in bar["labels"] if "t1" in label["classes"]}
    single = "stretch add arg_max conv_scores conv_f…tures hidden…tures hidden…cores".split()
    assert names == {"weigh #5", "weigh #6", *single}
    assert all("t0" in label["classes"] or "t1" in label["classes"] for b in narrow["bars"] for label in b["labels"])
    (alone,) = timeline_rows(model([], [step(0, "conv"), step(1, "copy")]))
    assert alone["classes"] == "" and alone["lane"] == wide["lane"]


def test_waits_for_devices() -> None:
    """Of a synchronous device, and at the end; bars of a queue do not overlap where a wait leaves steps."""

    def drawn(steps, *waits):
        laid = timeline.lay_out(model([], steps, waits))
        return [(b.lane, b.first, b.end, b.kind) for b in laid.bars], laid.marks

    bars, _ = drawn([step(0, "conv", "npu"), step(1, "copy")])
    assert bars == [(1, 0, 1, "run"), (0, 0, 1, "blocked"), (0, 1, 2, "run")]
    laid = timeline.lay_out(model([], [step(0, "conv", "npu", launched=True)], [data.Wait("npu", 1, (0,))]))
    assert laid.bars[0].text.endswith("waited for at the end")
    bars, marks = drawn([step(0, "conv", "npu", launched=True), step(1, "copy")], data.Wait("npu", 2, (0,)))
    assert (1, 1, 2, "pending") in bars and marks[-1].text.startswith("at the end: wait for npu")
    steps = [step(i, f"op{i}", "npu", launched=True) for i in range(3)]
    bars, _ = drawn(steps, data.Wait("npu", 2, (0,), 1), data.Wait("npu", 3, (1, 2)))
    assert bars == [(1, i, i + 1, "launched") for i in range(3)]
    apart = [step(0, "a", "npu", launched=True), step(1, "b"), step(2, "c", "npu", launched=True), step(3, "d")]
    bars, _ = drawn(apart, data.Wait("npu", 3, (0,), 1), data.Wait("npu", 4, (2,)))
    assert [bar for bar in bars if bar[3] == "pending"] == [(1, 1, 2, "pending"), (1, 3, 4, "pending")]


def test_long_schedules_are_drawn_in_bins() -> None:
    count = 5_000
    steps = [step(i, "op", "npu" if i % 7 == 0 else None, launched=i % 7 == 0) for i in range(count)]
    waits = [data.Wait("npu", i + 2, (i,)) for i in range(0, count - 2, 7)]
    laid = timeline.lay_out(model([], steps, waits))
    assert laid.binned == 17
    assert len(laid.bars) <= 2 * timeline.MAX_BARS
    assert not laid.marks
    assert max(bar.end for bar in laid.bars) == count


@given(st.lists(st.integers(1, 1 << 20), min_size=1, max_size=60))
@settings(deadline=None, max_examples=60)
def test_areas_of_a_treemap_are_the_sizes(sizes) -> None:
    sizes = sorted(sizes, reverse=True)
    found = figures.squarify(sizes, 900, 230)
    assert len(found) == len(sizes)
    for size, place in zip(sizes, found, strict=True):
        assert place.width * place.height == pytest.approx(size / sum(sizes))
        assert -1e-9 <= place.x <= place.x + place.width <= 1 + 1e-9
        assert -1e-9 <= place.y <= place.y + place.height <= 1 + 1e-9
    for index, one in enumerate(found):
        for other in found[:index]:
            wide = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            high = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert wide < 1e-9 or high < 1e-9


def test_each_screen_has_a_treemap_of_all_items() -> None:
    items = [{"name": name, "kind": "code", "bytes": size} for name, size in (("a", 300), ("b", 100))]
    rows = figures.treemap_row(items)
    assert [(row["classes"], row["height"]) for row in rows] == [("wide", 230), ("narrow", 320)]
    sizes = [[(item["name"], item["width"], item["height"]) for item in row["items"]] for row in rows]
    assert sizes == [[("a", "75%", "230"), ("b", "25%", "230")], [("a", "75%", "320"), ("b", "25%", "320")]]


@given(st.text("abcdefgh_", min_size=1, max_size=64), st.floats(0, 1), st.floats(0, 400))
@settings(deadline=None, max_examples=200)
def test_labels_fit(name, width, height) -> None:
    seen = []
    for label in figures.labels(name, "1,234 bytes", width, height):
        seen += label.classes.split()
        for tier in label.classes.split():
            along, across = width * figures.TIERS[tier], height
            if label.vertical:
                along, across = across, along
            lines = [label.text] if label.second is None else [label.text, label.second]
            assert max(map(len, lines)) * figures.ADVANCE <= along
            assert len(lines) * figures.LINE <= across
            assert label.text == name or (len(label.text) >= figures.MIN_LETTERS and "…" in label.text)
    assert len(seen) == len(set(seen))
    assert figures.shortened("constant_weights_17", 9) == "cons…s_17" and figures.shortened("short", 9) == "short"


# --- The table of inputs and outputs


def test_states_and_quantisation_are_shown() -> None:
    graph = model([buffer("s", 4, 0, 0, 0, "state")], [step(0, "op")])
    (pool,) = ram_rows(graph)
    assert pool["note"] == "no limit; 4 bytes of them state, kept between runs"
    shown = page(example())
    assert "real = 1 * (value - 0)" in shown
