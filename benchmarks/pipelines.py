# SPDX-License-Identifier: Apache-2.0
"""Frames per second of submit and poll beside run, on emulated accelerators of this host with stated latencies.

A model is a chain: each stage is a job on a device of its own, and a last step on the processor. The bound is that of
the slowest stage: no device can compute more frames. With two frames in flight, a chain of more than two stages has a
second bound: two frames per sum of all stages.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import Report, SkippedError, execute, host_compiler, opwest_command, parser, positive

PIPELINES = ((20000, 20000), (10000, 30000), (30000, 10000), (15000, 15000, 15000), (5000, 5000))
"""Microseconds of each stage."""
ELEMENTS = 16
LEAST = 0.8
"""The least part of the bound that submit and poll must reach."""
ROOT = Path(__file__).resolve().parents[1]

OPERATORS = """#include <stdint.h>
#include <opwest/npu_emul.h>

int32_t stage(const int8_t *x, int8_t *y, const struct device *dev);
int32_t finish(const int8_t *x, int8_t *y);

int32_t stage(const int8_t *x, int8_t *y, const struct device *dev)
{
	return opwest_npu_emul_add(dev, 1, x, x, y, ELEMENTS);
}

int32_t finish(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < ELEMENTS; i++) {
		y[i] = (int8_t)(x[i] ^ 0x55);
	}
	return 0;
}
"""

MAIN = """#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <chain.h>

CHAIN_STREAM_DEFINE(stream);
static const struct chain_devices devices = CHAIN_DEVICES_DT_INIT;
static int8_t of_run[FRAMES][ELEMENTS], of_stream[FRAMES][ELEMENTS];

static double seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void)
{
	const struct chain_inputs none = {0};
	int submitted = 0, rc = chain_stream_open(&stream, &devices);
	double begin = seconds(), by_run, by_stream;

	for (int frame = 0; frame < FRAMES && rc == 0; frame++) {
		memset(stream.workspace.input.x, frame, ELEMENTS);
		rc = chain_run(&none, &(struct chain_outputs){.y = of_run[frame]}, &stream.workspace, &devices);
	}
	by_run = seconds() - begin;
	begin = seconds();
	for (int frame = 0; frame < FRAMES && rc == 0; frame++) {
		const struct chain_frame *next;

		while (submitted < FRAMES && rc == 0 && (next = chain_stream_frame(&stream)) != NULL) {
			memset(next->input.x, submitted, ELEMENTS);
			rc = chain_submit(&stream, &none, &(struct chain_outputs){.y = of_stream[submitted++]});
		}
		rc = rc == 0 ? chain_poll(&stream, OPWEST_FOREVER, NULL) : rc;
	}
	by_stream = seconds() - begin;
	if (rc != 0 || chain_stream_close(&stream) != 0) {
		printf("error: %d\\n", rc);
		return 1;
	}
	printf("run %.3f stream %.3f equal %d\\n", FRAMES / by_run, FRAMES / by_stream,
	       memcmp(of_run, of_stream, sizeof(of_run)) == 0);
	return 0;
}
"""


def write_chain(folder: Path, stages: Sequence[int], frames: int) -> Path:
    """Write a manifest with a device per stage, whose jobs take `stages` microseconds; return it."""
    path = ROOT / "zephyr_module" / "drivers" / "npu_emul" / "make_program.py"
    spec = importlib.util.spec_from_file_location("make_program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder.mkdir(parents=True)
    (folder / "add.onpu").write_bytes(module.make_program([("add", {"id": 1})]))
    numbers = f"enum {{ ELEMENTS = {ELEMENTS}, FRAMES = {frames} }};\n"
    (folder / "stages.c").write_text(numbers + OPERATORS)
    (folder / "main.c").write_text(numbers + MAIN)
    tensor = {"dtype": "int8", "shape": [ELEMENTS]}
    args = [{"name": "x", **tensor}, {"name": "y", **tensor, "direction": "out"}]
    names = [f"npu{number}" for number in range(len(stages))]
    steps = [
        {"call": "stage", "device": name, "args": [f"t{number}" if number else "x", f"t{number + 1}"]}
        for number, name in enumerate(names)
    ]
    manifest = {
        "version": 1,
        "model": "chain",
        "objects": [{"files": ["stages.c"]}],
        "devices": {
            name: {
                "devicetree": {"nodelabel": name},
                "program": "add.onpu",
                "timeout_ms": 1000,
                "host": {"driver": "npu-emul", "latency_us": latency},
            }
            for name, latency in zip(names, stages, strict=True)
        },
        "operators": {"stage": {"device": {}, "async": True, "args": args}, "finish": {"args": args}},
        "run": {
            "stream": True,
            "inputs": {"x": {**tensor, "external": False}},
            "outputs": {"y": tensor},
            "steps": [*steps, {"call": "finish", "args": [f"t{len(stages)}", "y"]}],
        },
        "application": {"sources": ["main.c"]},
    }
    (folder / "manifest.yaml").write_text(json.dumps(manifest, indent=1))
    return folder / "manifest.yaml"


def measure(work: Path, stages: Sequence[int], frames: int) -> tuple[float, float]:
    """Return the frames per second of run, and of submit and poll. Raises AssertionError if results differ."""
    app = work / "app"
    execute([*opwest_command(), "generate", write_chain(work / "source", stages, frames), "-o", app])
    text = execute([*opwest_command(), "run", app, "--host"])
    found = re.search(r"^run ([0-9.]+) stream ([0-9.]+) equal (\d)$", text, re.MULTILINE)
    if found is None or found[3] != "1":
        raise AssertionError(f"unexpected output: {text}")
    return float(found[1]), float(found[2])


def bound(stages: Sequence[int]) -> float:
    """Return the bound of the frames per second with two frames in flight."""
    return 1e6 / max(max(stages), sum(stages) / 2)


def main() -> int:
    """Measure all pipelines."""
    options = parser(__doc__)
    options.add_argument("--frames", type=positive, default=200, help="frames per pipeline (default: 200)")
    given: argparse.Namespace = options.parse_args()
    report = Report("Streams")
    rows = []
    try:
        host_compiler()
        with tempfile.TemporaryDirectory() as folder:
            for number, stages in enumerate(PIPELINES):
                by_run, by_stream = measure(Path(folder) / str(number), stages, given.frames)
                most = bound(stages)
                name = " + ".join(f"{latency / 1000:g} ms" for latency in stages)
                rows.append((name, by_run, by_stream, most, by_stream / most, by_stream / by_run))
    except SkippedError as error:
        report.skip("pipelines", error)
        return report.finish(given.json)
    columns = ("stages", "run", "submit and poll", "bound", "part of the bound", "gain")
    report.table(f"Frames per second, {given.frames} frames, emulated on this host", columns, rows)
    for name, _, by_stream, most, *_ in rows:
        report.limit(f"bound / frames per second, {name}", most / by_stream, 1 / LEAST)
    return report.finish(given.json)


if __name__ == "__main__":
    sys.exit(main())
