# SPDX-License-Identifier: Apache-2.0
"""Imported layers that call CMSIS-NN: results equal those of the interpreter, and open checks the buffers.

The processors have none of CMSIS-NN's instruction sets (an385), DSP (an386), and MVE (an547).
"""

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from cmsis_nn_support import cmsis_nn_directory, cmsis_nn_modules
from cover import configured
from requirements_support import need, skip_here
from sequence_support import Subject, application
from zephyr_support import Workspace

need("tflite")

from models.campaigns import cases_of, graph_of  # noqa: E402
from models.layers import KINDS  # noqa: E402
from models.test_cmsis_nn import element, pool  # noqa: E402
from opwest.importers.models.graph.types import Rules  # noqa: E402
from opwest.importers.models.interpret.run import outputs_of, run_graph  # noqa: E402

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

BOARDS = {"mps2/an385": [], "mps2/an386": [], "mps3/corstone300/an547": ["-DCONFIG_FPU=y"]}
"""The options of a board: GCC has MVE only with the registers of the FPU."""
EACH = sized(3, 10)
"""The number of random layers of a kind."""


def subjects(folder: Path) -> list[Subject]:
    """Return random layers with the results of the interpreter."""
    random = np.random.default_rng(14)
    families = [*((KINDS[kind], "int8") for kind in KINDS), (pool, "int8"), (element, "int8")]
    families += [(KINDS["CONV_2D"], "int16"), (KINDS["DEPTHWISE_CONV_2D"], "int16")]
    found = []
    for make, dtype in families:
        for number in range(EACH):
            name = f"{make.__name__}_{dtype}_{number}"
            (folder / f"{name}.tflite").write_bytes(make(random, dtype).build())
            graph = graph_of((folder / f"{name}.tflite").read_bytes())
            graph = dataclasses.replace(graph, rules=Rules(dense_rounds_twice=True))
            cases = cases_of(graph, random, 2)
            outputs = [outputs_of(graph, run_graph(graph, case, None)) for case in cases]
            found.append(Subject(name, folder / f"{name}.tflite", cases, outputs))
    return found


@pytest.fixture(scope="module")
def made(opwest: Opwest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Subject]]:
    """Return the application, and the layers in it."""
    cmsis_nn_directory()
    folder = tmp_path_factory.mktemp("layers")
    layers = subjects(folder)
    app = application(opwest, folder, layers, "--kernels", "cmsis-nn", "--rounding", "cmsis-nn")
    return app, layers


@pytest.fixture(scope="module")
def modules(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the option with the modules."""
    try:
        return cmsis_nn_modules(workspace.base, tmp_path_factory.mktemp("modules"))
    except FileNotFoundError as reason:
        skip_here(str(reason))


@configured("board", reversed(BOARDS))
def test_layers_equal_the_interpreter(
    workspace: Workspace, made: tuple[Path, list[Subject]], modules: list[str], board: str
) -> None:
    app, layers = made
    sources = [next((app / "models" / one.name).rglob("operators.c")).read_text() for one in layers]
    assert sum("arm_" in text for text in sources) > len(layers) / 2
    console = workspace.build(app, board, *BOARDS[board], *modules).run("^finished: ")
    for one in layers:
        for run, (wanted, found) in enumerate(zip(one.outputs, one.parsed(console), strict=True)):
            for expected, array in zip(wanted, found, strict=True):
                assert np.array_equal(expected, array), f"{one.name}, run {run}"


@configured(board="mps3/corstone300/an547")
def test_open_refuses_buffers_for_another_instruction_set(
    workspace: Workspace, opwest: Opwest, tmp_path: Path, modules: list[str]
) -> None:
    """With MVE the depthwise convolution needs more scratch memory than on a processor without it."""
    random, name = np.random.default_rng(3), "depthwise"
    file = tmp_path / "depthwise.tflite"
    while True:
        file.write_bytes(KINDS["DEPTHWISE_CONV_2D"](random, "int8").build())
        opwest("import", "tflite", file, "-o", tmp_path / "none", "--kernels", "cmsis-nn-none", "--vectors", 0)
        opwest("import", "tflite", file, "-o", tmp_path / "mve", "--kernels", "cmsis-nn-mve", "--vectors", 0)
        texts = [(tmp_path / one / "manifest.yaml").read_text() for one in ("none", "mve")]
        if "arm_depthwise" in texts[0] and "scratch" in texts[1] and "scratch" not in texts[0]:
            break
        for one in ("none", "mve"):
            for path in (tmp_path / one).iterdir():
                path.unlink()
    graph = graph_of(file.read_bytes())
    cases = cases_of(graph, random, 1)
    outputs = [outputs_of(graph, run_graph(graph, case, None)) for case in cases]
    subject = Subject(name, file, cases, outputs)
    (tmp_path / "app").mkdir()
    app = application(opwest, tmp_path / "app", [subject], "--kernels", "cmsis-nn-none")
    board = "mps3/corstone300/an547"
    needed = "-DCONFIG_CMSIS_NN_TRANSPOSE=y"
    console = workspace.build(app, board, *BOARDS[board], *modules, needed).run("^finished: ")
    assert "finished: -12" in console
