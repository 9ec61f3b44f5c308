# SPDX-License-Identifier: Apache-2.0
"""Imported layers that call CMSIS-NN: results equal those of the interpreter, and open checks the buffers.

The processors have none of CMSIS-NN's instruction sets (an385), DSP (an386), and MVE (an547).
"""

import dataclasses
import shutil
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

MVE = "mps3/corstone300/an547"
BOARDS = {"mps2/an385": [], "mps2/an386": [], MVE: ["-DCONFIG_FPU=y"]}
"""The options of a board: GCC has MVE only with the registers of the FPU."""
REFUSED = {MVE: -12}
"""The result of open of a model for another instruction set, -ENOMEM; other models return 0."""
EACH = sized(2, 10)
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


def refused(opwest: Opwest, folder: Path) -> Subject:
    """Return a depthwise convolution that with MVE needs more scratch memory than on a processor without it."""
    random = np.random.default_rng(3)
    file, none, mve = folder / "depthwise.tflite", folder / "none", folder / "mve"
    while True:
        file.write_bytes(KINDS["DEPTHWISE_CONV_2D"](random, "int8").build())
        opwest("import", "tflite", file, "-o", none, "--kernels", "cmsis-nn-none", "--vectors", 0)
        opwest("import", "tflite", file, "-o", mve, "--kernels", "cmsis-nn-mve", "--vectors", 0)
        texts = [(one / "manifest.yaml").read_text() for one in (none, mve)]
        if "arm_depthwise" in texts[0] and "scratch" in texts[1] and "scratch" not in texts[0]:
            break
        shutil.rmtree(none)
        shutil.rmtree(mve)
    graph = graph_of(file.read_bytes())
    cases = cases_of(graph, random, 1)
    outputs = [outputs_of(graph, run_graph(graph, case, None)) for case in cases]
    return Subject("depthwise", file, cases, outputs, ("--kernels", "cmsis-nn-none"))


@pytest.fixture(scope="module")
def made(opwest: Opwest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Subject]]:
    """Return the application, and the layers in it."""
    cmsis_nn_directory()
    folder = tmp_path_factory.mktemp("layers")
    layers = subjects(folder)
    options = ("--kernels", "cmsis-nn", "--rounding", "cmsis-nn")
    app = application(opwest, folder, [*layers, refused(opwest, folder)], *options)
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
        for run, (wanted, found) in enumerate(
            zip(one.outputs, one.parsed(console, REFUSED.get(board, 0)), strict=True)
        ):
            for expected, array in zip(wanted, found, strict=True):
                assert np.array_equal(expected, array), f"{one.name}, run {run}"


@configured(board=MVE)
def test_open_refuses_buffers_for_another_instruction_set(
    workspace: Workspace, made: tuple[Path, list[Subject]], modules: list[str]
) -> None:
    console = workspace.build(made[0], MVE, *BOARDS[MVE], *modules).run("^finished: ")
    assert f"finished: {REFUSED[MVE]}\n" in console and "\ndepthwise 0 " not in console
