# SPDX-License-Identifier: Apache-2.0
"""Trained models imported with `opwest import tflite` in one image: equal to LiteRT's reference kernels."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.oracle import litert
from models.real import model_file, structured_and_random
from requirements_support import need
from zephyr_support import Workspace

need("tflite", "ai_edge_litert")

from opwest.importers.models.read import read_model  # noqa: E402
from opwest.write.writer import read_record  # noqa: E402

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]
MODELS = ["hello_world_float", "hello_world_int8", "ad01_fp32", "ad01_int8", "kws_int8", "ic_int8", "vww_int8"]
BOARDS = ["native_sim/native/64", "mps2/an385"]
OPTIONS = {"mps2/an385": ["-DCONFIG_MINIMAL_LIBC=y"]}
INPUTS = [1, 7, 60]  # of structured_and_random: a ramp, a wave, a random one

ONE = """\
#include <{name}.h>
#include <{name}_devicetree.h>

{NAME}_WORKSPACE_DEFINE({name}_workspace);
static const struct {name}_devices {name}_context = {NAME}_DEVICES_DT_INIT;
static const uint8_t {name}_data[{count}][{size}] __aligned(8) = {{{data}}};
static uint8_t {name}_result[{results}] __aligned(8);

static int try_{name}(void)
{{
	int rc = {name}_open(&{name}_workspace, &{name}_context);

	for (int i = 0; rc == 0 && i < {count}; i++) {{
		rc = {name}_run(&(struct {name}_inputs){{(const void *){name}_data[i]}},
				&(struct {name}_outputs){{(void *){name}_result}}, &{name}_workspace, &{name}_context);
		show("{name}", i, {name}_result, sizeof({name}_result));
	}}
	return rc;
}}
"""
MAIN_C = """\
#include <stdint.h>
#include <stdio.h>
#include <zephyr/toolchain.h>

static void show(const char *model, int number, const uint8_t *bytes, unsigned int size)
{{
	printf("%s %d ", model, number);
	for (unsigned int i = 0; i < size; i++) {{
		printf("%02x", bytes[i]);
	}}
	printf("\\n");
}}

{models}
int main(void)
{{
	printf("finished: %d\\n", {calls});
	return 0;
}}
"""


@dataclass(frozen=True)
class Subject:
    """A model file with inputs and the results of LiteRT."""

    name: str
    file: Path
    inputs: list[Any]
    outputs: list[Any]


@pytest.fixture(scope="module")
def subjects() -> list[Subject]:
    """Return the models, or skip."""
    return [_subject(name, model_file(f"{name}.tflite")) for name in MODELS]


def _subject(name: str, file: Path) -> Subject:
    content = file.read_bytes()
    [graph] = read_model(content, str(file))
    cases = structured_and_random(graph.inputs[0].shape, graph.inputs[0].dtype)
    chosen = [cases[i] for i in INPUTS]
    return Subject(name, file, [case[0] for case in chosen], [case[0] for case in litert(content, chosen)])


@pytest.fixture(scope="module")
def application(subjects: list[Subject], opwest: Opwest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one application of all models."""
    folder = tmp_path_factory.mktemp("imported")
    for subject in subjects:
        opwest("import", "tflite", subject.file, "-o", folder / subject.name, "--vectors", 0)
    opwest("generate", *(folder / s.name / "manifest.yaml" for s in subjects), "-o", folder / "app")
    models = {m["name"]: m for m in read_record(folder / "app")["models"]}
    (folder / "app" / "src" / "main.c").write_text(_main(subjects, models))
    return folder / "app"


def _main(subjects: list[Subject], models: dict[str, Any]) -> str:
    parts = []
    for subject in subjects:
        assert subject.name in models
        rows = ("{" + ",".join(map(str, array.tobytes())) + "}" for array in subject.inputs)
        parts.append(
            ONE.format(
                name=subject.name,
                NAME=subject.name.upper(),
                count=len(subject.inputs),
                size=subject.inputs[0].nbytes,
                data=",\n".join(rows),
                results=subject.outputs[0].nbytes,
            )
        )
    return MAIN_C.format(models="\n".join(parts), calls=" + ".join(f"try_{s.name}()" for s in subjects))


@pytest.mark.parametrize("board", BOARDS)
def test_models_equal_litert(workspace: Workspace, subjects: list[Subject], application: Path, board: str) -> None:
    console = workspace.build(application, board, *OPTIONS.get(board, [])).run("^finished: ")
    assert "finished: 0" in console
    found = {
        (name, int(i)): text for name, i, text in re.findall(r"^(\w+) (\d) ([0-9a-f]+)\s*$", console, re.MULTILINE)
    }
    assert len(found) == len(MODELS) * len(INPUTS)
    for subject in subjects:
        for number, expected in enumerate(subject.outputs):
            result = np.frombuffer(bytes.fromhex(found[subject.name, number]), expected.dtype).reshape(expected.shape)
            assert np.array_equal(result, expected), f"{subject.name}, input {INPUTS[number]}"
