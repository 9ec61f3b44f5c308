# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the report: small models and projects."""

import json
import struct
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from opwest import pipeline
from opwest.base.diagnostics import Diagnostics
from opwest.objects.images import NOTE_FORMAT, NOTE_OWNER, NOTE_SHAPE, NOTE_TYPE
from opwest.project.request import Examination, Request
from opwest.reports import collect, data
from opwest.reports.files import decode
from opwest.reports.measured import add_measured

TESTS = Path(__file__).resolve().parents[1]
TWO_NPUS = TESTS.parent / "examples" / "two_npus" / "manifest.yaml"
HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}\u202e\x07"


def buffer(name: str, size: int, offset: int, first: int, last: int, role: str = "intermediate") -> data.Buffer:
    return data.Buffer(name, role, "int8", (size,), size, size, "sram", offset, first, last, (first,), (last,))


def step(index: int, operator: str, device: str | None = None, *, launched: bool = False) -> data.Step:
    return data.Step(index, operator, device, launched, 10 + index)


def model(buffers: list[data.Buffer], steps: list[data.Step], waits: list[data.Wait] | None = None) -> data.Model:
    planned = max((b.offset + b.reserved for b in buffers), default=0)
    live = [0] * len(steps)
    for one in buffers:
        for index in range(one.first, min(one.last + 1, len(steps))):
            live[index] += one.reserved
    most = max(live, default=0)
    peak = data.Peak(live.index(most) if live else 0, most)
    devices = dict.fromkeys(s.device for s in steps if s.device)
    empty = ("boards", "tensors", "constants", "programs", "objects", "inputs")
    return data.Model(
        name="made",
        description=None,
        manifest="manifest.yaml",
        reorder=False,
        **dict.fromkeys(empty, ()),
        pools=(data.Pool("sram", planned, most, 8, None, peak),) if buffers else (),
        buffers=tuple(buffers),
        steps=tuple(steps),
        waits=tuple(waits or ()),
        devices=tuple(data.Device(name, f"devicetree nodelabel {name}", None) for name in devices),
        operators=tuple(
            data.Operator(name, name, tuple(s.index for s in steps if s.operator == name), {}, {})
            for name in dict.fromkeys(s.operator for s in steps)
        ),
    )


def note_section(*names: str, order: str = "<") -> bytes:
    """Return the section with the notes of models in an image."""
    content = b""
    owner = NOTE_OWNER.encode() + b"\0"
    for name in names:
        record = {key: 0 if kind is int else "" if kind is str else [] for key, kind in NOTE_SHAPE.items()}
        text = json.dumps(record | {"format": NOTE_FORMAT, "model": name}).encode()
        head = struct.pack(f"{order}III", len(owner), len(text), NOTE_TYPE)
        content += head + owner.ljust(-(-len(owner) // 4) * 4, b"\0") + text.ljust(-(-len(text) // 4) * 4, b"\0")
    return content


def report_of(*models: data.Model) -> data.Report:
    return data.Report("0", models)


def example(path: Path = TWO_NPUS) -> data.Report:
    faults = Diagnostics()
    return collect.report_of(collect.read_inputs([path], faults), [], faults)


def examined(path: Path) -> Examination:
    faults = Diagnostics()
    found = pipeline.run(Request((path,)), faults, "plan").examinations
    faults.raise_if_errors()
    return found[0]


def hostile(report: data.Report) -> data.Report:

    def poison(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: poison(item) for name, item in value.items()}
        if isinstance(value, list):
            return [poison(item) for item in value]
        return value + HOSTILE if isinstance(value, str) else value

    return decode(data.Report, poison(json.loads(json.dumps(asdict(report)))))


def profile_json(model: str = "two_npus", *, where: str = "mps2/an385", unit: str = "cycles") -> dict[str, Any]:
    """Return a profile of `opwest run --profile`: two steps, a launch and a wait."""

    def point(kind: str, mean: float, **more: Any) -> dict[str, Any]:
        row = {"kind": kind, "index": 0, "step": None, "steps": [], "operator": None, "device": None, "tensor": None}
        times = {"runs": 4, "last": mean, "min": mean - 1, "max": mean + 1, "total": 4 * mean, "mean": mean}
        return {**row, "line": None, **times, **more}

    points = [
        point("run", 1000.0),
        point("launch", 50.0, step=0, steps=[0], operator="hidden_features", device="npu1"),
        point("step", 200.0, step=2, steps=[2], operator="stretch"),
        point("wait", 600.0, steps=[0], device="npu1"),
        point("step", 100.0, step=8, steps=[8], operator="arg_max"),
    ]
    head = {"format": 1, "kind": "opwest-profile", "model": model, "where": where, "clock": "emulated", "unit": unit}
    return {**head, "frequency_hz": 25_000_000, "points": points, "stack": {"used": 812, "size": 4096}}


def results_json(model: str = "two_npus") -> dict[str, Any]:
    """Return the output of `opwest run --board --reference --json`."""
    error = {"elements": 10, "differing": 2, "largest_error": 3.0, "mean_error": 0.5, "at": [0, 1]}
    result = {"model": model, "board": "mps2/an385", "device": "/dev/pts/0", "build": "build", "clock": "emulated"}
    result |= {"outputs": {"label": [7]}, "errors": {"label": error}, "latency_ns": [2_000_000, 1_000_000, 3_000_000]}
    return {"ok": True, "diagnostics": [], "result": result}


def measured_example(folder: Path) -> data.Report:
    (folder / "profile.json").write_text(json.dumps(profile_json()))
    (folder / "run.json").write_text(json.dumps(results_json()))
    report, faults = example(), Diagnostics()
    models = add_measured(report.models, [folder / "profile.json", folder / "run.json"], faults)
    assert not list(faults)
    return replace(report, models=tuple(models))


def layered_example() -> data.Report:
    """Return the example as if an import had made it: kinds, names of a file, costs on two cores, a variant."""
    report = example()
    [made] = report.models
    cores = tuple(data.Core(name, "cycles of a model", "none", 4500) for name in ("cortex-m4", "cortex-m55"))
    layers = tuple(
        replace(
            one,
            label=f"CONV_2D 3×3×16 #{one.step}",
            kind="CONV_2D + ADD + RELU",
            name=f"functional_1/a_block_with_a_long_name_{one.step}/convolution/BiasAdd;other",
            window="3×3, stride 2×2",
            macs=1000 * (one.step + 1),
            file_macs=2000 * (one.step + 1),
            kernel="dsp-bytes",
            costs=tuple(data.LayerCost(core.name, 500, "measured", 90, 16, "fastest, measured") for core in cores),
        )
        for one in made.layers
    )
    titles = {one.name: f"functional_1/{one.name}/BiasAdd" for one in made.buffers if one.role == "intermediate"}
    other = data.Alternative("dsp", {"sram": 320}, 900, layers, cores)
    made = replace(made, layers=layers, cores=cores, titles=titles, views=("9 (RESHAPE)",), alternatives=(other,))
    return replace(report, models=(replace(made, variants={"dsp": ("cortex-m4", "cortex-m4f")}),))
