# SPDX-License-Identifier: Apache-2.0
"""examples/two_npus on this machine: the schedule, the results against numpy, and the overlap of the branches."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from examples.example_files import held_out_of, reference_of
from in_process import fail, succeed
from requirements_support import need, need_x86_64

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "two_npus"
BOTH = ("manifest.yaml", "manifest_serial.yaml")
MAX_RATIO = 0.6
TARGETS = ("x86-64", "aarch64-host", "cortex-m3", "cortex-m55", "cortex-m55f", "cortex-m55f-mve", "cortex-m55f-mvei")
reference = reference_of("two_npus")


def run_on_host(manifests, app, *options):
    need("cc")
    succeed("generate", *manifests, "-o", app, *options)
    return succeed("run", app, "--host").stdout


@pytest.fixture
def example(tmp_path):
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("__pycache__")))


def edit(path, *changes):
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def check_console(console, models):
    """The predictions of every model equal those of numpy on this machine."""
    expected = reference.predict(held_out_of("two_npus")[0]).tolist()
    for model in models:
        printed = re.search(rf"^{model}:((?: [0-9])+)$", console, re.MULTILINE)
        assert printed, console
        assert [int(word) for word in printed[1].split()] == expected
        assert f"{model}: {len(expected)} of {len(expected)} equal the reference" in console
    assert console.splitlines()[-1] == "done"


def check_ratio(console):
    ratio = re.search(r"^makespan: ([0-9]+\.[0-9]{3}) of the serial one$", console, re.MULTILINE)
    assert ratio and 0.4 <= float(ratio[1]) <= MAX_RATIO, console


def schedule_of(manifest):
    done = succeed("check", "--json", "--schedule", manifest)
    (result,) = json.loads(done.stdout)["result"]
    return [
        f"wait {row['device']}" if row["kind"] == "wait" else f"{row['operator']}{'>' * (row['kind'] == 'launch')}"
        for row in result["schedule"]
    ]


def test_held_out_header_agrees_with_the_reference():
    images, labels, predictions = held_out_of("two_npus")
    assert len(images) == 40
    assert (predictions == labels).mean() >= 0.95


def test_both_branches_are_launched_before_anything_is_waited_for():
    assert schedule_of(EXAMPLE / "manifest.yaml") == [
        *("hidden_features>", "hidden_scores>", "stretch", "conv_features>", "conv_scores>"),
        *("wait npu0", "weigh", "wait npu1", "weigh", "add", "arg_max"),
    ]


def test_schedule_in_the_readme_is_current():
    done = succeed("check", "--schedule", EXAMPLE / "manifest.yaml")
    timeline = done.stdout[done.stdout.index("two_npus: schedule") :]
    assert timeline.strip() in (EXAMPLE / "README.md").read_text(encoding="utf-8")


def test_serial_model_differs_only_in_how_it_runs():
    """The manifests are equal except for the asynchronous steps."""
    overlapped, serial = (yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8")) for name in BOTH)
    for operator in overlapped["operators"].values():
        operator.pop("async", None)
    for name, operator in serial["operators"].items():
        assert operator.pop("symbol", None) == (f"{name}_and_wait" if "device" in operator else None)
        if "device" in operator:
            assert operator["device"].pop("launch") is True
    assert overlapped["run"].pop("order") == "any"
    parts = ("objects", "memory", "devices", "operators", "constants", "run")
    assert {part: overlapped[part] for part in parts} == {part: serial[part] for part in parts}


def test_step_on_a_device_with_another_program_is_rejected(example):
    edit(example / "manifest.yaml", ("{call: hidden_features, device: npu1", "{call: hidden_features, device: npu0"))
    done = fail("check", example / "manifest.yaml")
    shown = done.stderr.splitlines()[0].removeprefix(f"{example}/")
    assert shown.endswith("device 'npu0' has program conv, operator 'hidden_features' requires dense")
    assert shown in (EXAMPLE / "README.md").read_text(encoding="utf-8")


def test_overlapped_model_is_faster_than_the_serial_one(tmp_path):
    console = run_on_host([EXAMPLE / name for name in BOTH], tmp_path / "app")
    check_console(console, ["two_npus", "two_npus_serial"])
    check_ratio(console)


def test_pipeline_equals_numpy_and_run(tmp_path):
    """Of the page on streams: the labels; the frames per second are those of a machine."""
    console = run_on_host([EXAMPLE / "manifest_pipeline.yaml"], tmp_path / "app")
    images, labels, _ = held_out_of("two_npus")
    network = reference.load()
    scores = reference.weigh(reference.conv_branch(images, network), network.parameters["conv_factor"])
    found = reference.arg_max(scores)
    correct = int((found == labels).sum())
    shown = [f"npu_pipeline: {' '.join(map(str, found.tolist()))}", f"stream: 40 of 40 equal run, {correct} correct"]
    assert console.splitlines()[:2] == shown
    page = (EXAMPLE.parents[1] / "docs" / "streaming.md").read_text(encoding="utf-8")
    assert "\n".join(shown) in page
    rates = re.search(r"^frames per second: ([0-9.]+) by run, ([0-9.]+) by submit and poll$", console, re.MULTILINE)
    assert rates and float(rates[2]) >= 1.5 * float(rates[1]), console


def test_with_llvm_metadata(tmp_path, monkeypatch):
    """The boards of the manifests determine the targets of the metadata, without a Zephyr workspace."""
    need("llvmlite")
    need_x86_64()
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    app = tmp_path / "app"
    console = run_on_host([EXAMPLE / name for name in BOTH], app, "--metadata=llvm")
    for model in ("two_npus", "two_npus_serial"):
        objects = app.glob(f"models/{model}/objects/*/{model}_metadata.o")
        assert sorted(path.parent.name for path in objects) == sorted(TARGETS)
        assert not (app / "models" / model / "src" / f"{model}_run.c").exists()
    check_console(console, ["two_npus", "two_npus_serial"])
    check_ratio(console)


SCORES_MAIN = """
#include <stdio.h>
#include <string.h>
#include <two_npus.h>
#include "images.h"

TWO_NPUS_WORKSPACE_DEFINE(workspace);
static const struct two_npus_devices devices = TWO_NPUS_DEVICES_DT_INIT;

int main(void)
{
	int rc = two_npus_open(&workspace, &devices);

	for (size_t i = 0; i < sizeof(images) / sizeof(images[0]) && rc == 0; i++) {
		int32_t label = -1;
		int32_t scores[10];
		const struct two_npus_outputs outputs = {.label = &label, .scores = scores};

		memcpy(workspace.input.image, images[i], sizeof(images[i]));
		rc = two_npus_run(&(struct two_npus_inputs){0}, &outputs, &workspace, &devices);
		for (int j = 0; j < 10; j++) {
			printf("%d ", (int)scores[j]);
		}
		printf("%d\\n", (int)label);
	}
	return rc == 0 ? two_npus_close(&workspace, &devices) : 1;
}
"""


def test_scores_of_any_image_equal_numpy_bit_for_bit(example, tmp_path):
    random = np.random.default_rng(7)
    parts = [held_out_of("two_npus")[0]]
    parts += [random.integers(low, high, (100, 8, 8, 1), dtype=np.int8) for low, high in ((0, 17), (-128, 128))]
    parts.append(random.choice(np.array([-128, 127], np.int8), (20, 8, 8, 1)))
    parts += [np.full((1, 8, 8, 1), value, np.int8) for value in (-128, -1, 0, 1, 16, 127)]
    images = np.concatenate(parts)
    label = "label: {dtype: int32, shape: [1]}"
    edit(
        example / "manifest.yaml",
        (f"outputs: {{{label}}}", f"outputs: {{{label}, scores: {{dtype: int32, shape: [1, 10]}}}}"),
        ("latency_us: 20000", "latency_us: 0"),
        ("application/held_out.h", "application/images.h"),
    )
    rows = ",\n".join("{" + ", ".join(map(str, image.ravel())) + "}" for image in images)
    (example / "application" / "images.h").write_text(f"static const int8_t images[][64] = {{\n{rows}\n}};\n")
    (example / "application" / "main.c").write_text(SCORES_MAIN)
    console = run_on_host([example / "manifest.yaml"], tmp_path / "app")
    printed = np.array([[int(word) for word in line.split()] for line in console.splitlines()])
    network = reference.load()
    branches = (("conv_factor", reference.conv_branch), ("dense_factor", reference.dense_branch))
    expected = sum(reference.weigh(branch(images, network), network.parameters[name]) for name, branch in branches)
    np.testing.assert_array_equal(printed[:, :10], expected)
    np.testing.assert_array_equal(printed[:, 10], reference.predict(images))
