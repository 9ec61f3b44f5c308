# SPDX-License-Identifier: Apache-2.0
"""Trained models imported with `opwest import tflite` in one image: equal to LiteRT's reference kernels."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cover import configured
from models.oracle import litert
from models.real import model_file, structured_and_random
from requirements_support import need
from sequence_support import Subject, application
from zephyr_support import Workspace

need("tflite", "ai_edge_litert")

from opwest.importers.models.read import read_model  # noqa: E402

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]
MODELS = ["hello_world_float", "hello_world_int8", "ad01_fp32", "ad01_int8", "kws_int8", "ic_int8", "vww_int8"]
BOARDS = ["native_sim/native/64", "mps2/an385"]
# The float models need a C library with math.h; Debian's newlib has no locks for threads.
OPTIONS = {"mps2/an385": ["-DCONFIG_NEWLIB_LIBC=y", "-DCONFIG_MULTITHREADING=n"]}
INPUTS = [1, 7, 60]  # of structured_and_random: a ramp, a wave, a random one


@pytest.fixture(scope="module")
def subjects() -> list[Subject]:
    """Return the models, or skip."""
    return [_subject(name, model_file(f"{name}.tflite")) for name in MODELS]


def _subject(name: str, file: Path) -> Subject:
    content = file.read_bytes()
    [graph] = read_model(content, str(file))
    cases = structured_and_random(graph.inputs[0].shape, graph.inputs[0].dtype)
    chosen = [cases[i] for i in INPUTS]
    return Subject(name, file, chosen, litert(content, chosen))


@pytest.fixture(scope="module")
def imported(subjects: list[Subject], opwest: Opwest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one application of all models."""
    return application(opwest, tmp_path_factory.mktemp("imported"), subjects)


@configured("board", reversed(BOARDS))
def test_models_equal_litert(workspace: Workspace, subjects: list[Subject], imported: Path, board: str) -> None:
    console = workspace.build(imported, board, *OPTIONS.get(board, [])).run("^finished: ")
    for subject in subjects:
        for number, (expected, [found]) in enumerate(zip(subject.outputs, subject.parsed(console), strict=True)):
            assert np.array_equal(found, expected[0]), f"{subject.name}, input {INPUTS[number]}"
