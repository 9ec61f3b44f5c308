# SPDX-License-Identifier: Apache-2.0
"""Emitted cache maintenance with a write-back cache that writes back, drops and fetches lines at random."""

import itertools
import re

import projects
import pytest
from accelerators_support import PROGRAMS, build, function, generate_quickly, play
from opwest.base.diagnostics import Diagnostics
from opwest.model.types.model import Model
from opwest.plan.memory import MemoryPlan
from opwest.render.actions import Cache, actions
from random_graphs import RandomGraph
from session_support import made_once

MODELS = 8
TURNS = 4
ROUNDS = 25


def _operators(graph: RandomGraph) -> str:
    lines = ["#include <stddef.h>", '#include "cached.h"']
    for index, step in enumerate(graph.steps):
        lines += [graph.head(index), "{", "\tconst struct span spans[] = {"]
        for number, (tensor, direction) in enumerate(step["args"]):
            lines.append(f"\t\t{{(uint8_t *)a{number}, {graph.sizes[tensor]}, USE_{direction.upper()}}},")
        launched = "true" if step["async"] else "false"
        dev = "dev" if step["device"] else "NULL"
        lines += ["\t};", "", f"\treturn cached_step({index}, {launched}, spans, {len(step['args'])}, {dev});", "}"]
    return "\n".join(lines) + "\n"


def _input(graph: RandomGraph, name: str, turn: int) -> list[int]:
    at = graph.inputs.index(name)
    return [(turn * 31 + at * 17 + i * 7 + 3) & 0xFF for i in range(graph.sizes[name])]


def _expected(graph: RandomGraph) -> list[dict[str, list[int]]]:
    """Return all tensors and states after each turn; the steps run one after the other."""
    tensors = {name: list(graph.content(name)) for name in (*graph.constants, *graph.states)}
    found = []
    for turn in range(TURNS):
        tensors |= {name: _input(graph, name, turn) for name in graph.inputs}
        tensors |= {name: [0] * graph.sizes[name] for name in graph.written}
        for index, step in enumerate(graph.steps):
            value = 2166136261 ^ index
            for tensor, direction in step["args"]:
                root, begin, end = graph.span(tensor)
                for byte in tensors[root][begin:end] if direction in ("in", "inout") else ():
                    value = ((value ^ byte) * 16777619) % 2**32
            for number, (tensor, direction) in enumerate(step["args"]):
                if direction in ("out", "inout"):
                    mixed = value ^ (number * 40503)
                    root, begin, end = graph.span(tensor)
                    values = [(mixed * (2 * i + 1) * 2654435761) % 2**32 >> 24 for i in range(end - begin)]
                    tensors[root][begin:end] = values
        for state, source in graph.next.items():
            root, begin, end = graph.span(source)
            tensors[state] = tensors[root][begin:end]
        found.append({name: list(values) for name, values in tensors.items()})
    return found


def _glue(graph: RandomGraph, model: Model, plan: MemoryPlan) -> str:
    name = model.name
    lines = [f"#include <{name}.h>", f"static struct {name}_workspace {name}_workspace;"]
    handles = ", ".join(
        f"&{'coherent' if device.coherent else 'cached'}_devices[{index}]" for index, device in enumerate(model.devices)
    )
    lines.append(f"static const struct {name}_devices {name}_context = {{{handles}}};")
    tensors = [*model.inputs, *model.outputs]
    external = [t for t in tensors if not t.placed]
    place = {t.name: f"{name}_own_{t.name}" for t in external}
    place |= {t.name: f"{name}_workspace.input.{t.name}" for t in model.inputs if t.placed}
    place |= {t.name: f"{name}_workspace.output.{t.name}" for t in model.outputs if t.placed}
    lines += [f"static uint8_t *{name}_own_{t.name};" for t in external]
    expected = _expected(graph)
    for tensor in (*tensors, *model.states):
        rows = ["{" + ", ".join(map(str, expected[turn][tensor.name])) + "}" for turn in range(TURNS)]
        lines.append(f"static const uint8_t {name}_{tensor.name}[][{tensor.type.size}] = {{{', '.join(rows)}}};")
    lines_of = {pool.name: pool.cache_line or 0 for pool in model.pools}
    prepare = [f"{name}_workspace = (struct {name}_workspace){{.status = OPWEST_STATUS_INIT}};"]
    for pool, planned in plan.pools.items():
        prepare.append(f"{name}_workspace.{pool} = cached_region({planned.size}, {lines_of[pool]});")
    coherent = {d.name: d.coherent for d in model.devices} | {"cpu": True}
    for tensor in external:
        line = max(lines_of.values()) if any(not coherent[agent] for agent in tensor.agents) else 0
        size = -(-tensor.type.size // line) * line if line else tensor.type.size
        macro = f"{name}_{'input' if tensor in model.inputs else 'output'}_{tensor.name}_padded".upper()
        padded = f"{macro} == {size}" if size > tensor.type.size else f"!defined({macro})"
        lines.append(f"#if !({padded})\n#error {macro}\n#endif")
        prepare.append(f"{name}_own_{tensor.name} = cached_region({size}, {line});")
    lines += function(f"static void {name}_prepare(void)", *prepare)
    for call in ("open", "close"):
        head = f"static int {name}_do_{call}(void)"
        lines += function(head, f"return {name}_{call}(&{name}_workspace, &{name}_context);")
    inputs = ", ".join(place[t.name] for t in model.inputs if not t.placed) or "0"
    outputs = ", ".join(place[t.name] for t in model.outputs if not t.placed) or "0"
    lines += function(
        f"static int {name}_do_run(uint32_t turn)",
        *(f"cached_write({place[t.name]}, {name}_{t.name}[turn], {t.type.size});" for t in model.inputs),
        f"return {name}_run(&(struct {name}_inputs){{{inputs}}}, &(struct {name}_outputs){{{outputs}}},",
        f"\t&{name}_workspace, &{name}_context);",
    )
    for state in model.states:
        pool, at = plan.place(state.name)
        place[state.name] = f"{name}_workspace.{pool} + {at}"
    checked = (*model.outputs, *model.states)
    checks = (f"cached_equal({place[t.name]}, {name}_{t.name}[turn], {t.type.size})" for t in checked)
    lines += function(f"static bool {name}_right(uint32_t turn)", f"return {' && '.join(checks)};")
    members = ", ".join(f"{name}_{part}" for part in ("prepare", "do_open", "do_run", "right", "do_close"))
    lines.append(f'static const struct cached_model {name}_cached = {{"{name}", {members}}};')
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    """Return random models with states and views that need all kinds of maintenance: graph, manifest, model, plan."""
    work = tmp_path_factory.mktemp("cached")
    return list(itertools.islice(_suitable(work), MODELS))


def _suitable(work):
    for seed in range(1000, 1100):
        graph = RandomGraph(seed, cached=True)
        path = graph.write(work / graph.name, _operators(graph))
        ((model, plan),) = projects.check([path], Diagnostics())
        operations = {a.operation for a in actions(model, plan) if isinstance(a, Cache)}
        views = sum(b.view is not None for step in model.steps for b in step.bindings)
        if len(operations) == 3 and model.states and views > 3:
            yield graph, path, model, plan


@pytest.fixture(scope="module")
def program(metadata, chosen):
    key = f"accelerators/cached_{metadata}"
    return made_once(key, lambda work: _build(work, chosen, metadata)) / "build" / "program"


def _build(work, chosen, metadata):
    app = generate_quickly([path for _, path, _, _ in chosen], work / "app", metadata=metadata)
    table = ", ".join(f"&{model.name}_cached" for _, _, model, _ in chosen)
    text = '#include "cached.h"\n' + "\n".join(_glue(graph, model, plan) for graph, _, model, plan in chosen)
    text += f"\nconst uint32_t cached_turns = {TURNS};\n"
    text += f"const struct cached_model *const cached_models[] = {{{table}, NULL}};\n"
    (work / "glue.c").write_text(text)
    sources = [work / "glue.c", PROGRAMS / "cached.c"]
    build(app, work / "build", sources, without=("port_host_cache.c",))


def _wrong(output: str) -> tuple[int, int]:
    return tuple(map(int, re.search(r"^(\d+) runs, (\d+) wrong", output, re.MULTILINE).groups()))


def test_results_are_correct_with_a_write_back_cache(program, chosen):
    assert len(chosen) == MODELS
    assert any(graph.next for graph, *_ in chosen)
    output = play(program, "", str(ROUNDS), "0")
    assert _wrong(output) == (MODELS * TURNS * ROUNDS, 0), output
    assert all(int(n) > 0 for n in re.search(r"(\d+) (\d+) (\d+) maintained", output).groups())


@pytest.mark.parametrize("left_out", [1, 2, 4, 7], ids=["flush", "flush_and_invalidate", "invalidate", "all"])
def test_results_are_wrong_without_cache_maintenance(program, left_out):
    output = play(program, "", str(ROUNDS), str(left_out))
    print(output)
    runs, wrong = _wrong(output)
    assert wrong > runs // (20 if left_out == 2 else 4)
    if left_out == 7:
        assert output.count(": wrong") >= MODELS - 2, "maintained data need not affect an output"
