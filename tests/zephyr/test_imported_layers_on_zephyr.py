# SPDX-License-Identifier: Apache-2.0
"""Imported layers on processors with and without DSP and MVE: with CMSIS-NN, with it for one layer, and in stripes."""

import dataclasses
import re
import shutil

import numpy as np
import pytest
from campaign import sized
from cmsis_nn_support import cmsis_nn_directory, cmsis_nn_modules, planted_table
from cover import configured
from requirements_support import need, skip_here
from sequence_support import Subject, application

need("tflite")

from models.campaigns import cases_of, graph_of  # noqa: E402
from models.layers import KINDS  # noqa: E402
from models.test_cmsis_nn import element, pool  # noqa: E402
from models.test_max_ram import convolutions  # noqa: E402
from models.test_stripes import pyramid  # noqa: E402
from opwest.compiler.graph.types import Rules  # noqa: E402
from opwest.compiler.reference.run import outputs_of, run_graph  # noqa: E402

pytestmark = pytest.mark.zephyr

NONE, DSP, MVE, NATIVE = "mps2/an385", "mps2/an386", "mps3/corstone300/an547", "native_sim/native/64"
"""Boards by the instruction set of their processor."""
OPTIONS = {MVE: ["-DCONFIG_FPU=y"]}
"""GCC has MVE only with the registers of the FPU."""
VARIANTS = {NONE: ["mla"], DSP: ["dsp"], MVE: ["mve"], NATIVE: []}
REFUSED = {MVE: -12}
"""The result of open of a model for another instruction set, -ENOMEM; other models return 0."""
EACH = sized(2, 10)
"""The number of random layers of a kind."""


@pytest.fixture(scope="module")
def modules(workspace, tmp_path_factory):
    """Return the option with the modules."""
    cmsis_nn_directory()
    try:
        return cmsis_nn_modules(workspace.base, tmp_path_factory.mktemp("modules"))
    except FileNotFoundError as reason:
        skip_here(str(reason))


@pytest.fixture(scope="module")
def no_cmsis_nn(workspace):
    """Return the option with the modules but for CMSIS-NN."""
    found = workspace.base.parent / "modules"
    rest = [str(one) for one in (found / "hal/cmsis", found / "hal/cmsis_6") if one.is_dir()]
    if not rest:
        skip_here(f"neither module cmsis nor cmsis_6 in {found}")
    return f"-DZEPHYR_MODULES={';'.join(rest)}"


# --- Layers that call CMSIS-NN: results equal those of the interpreter, and open checks the buffers


def subject(name, file, random, count, rules=None, options=()):
    """Return a layer with random inputs and the results of the interpreter."""
    graph = graph_of(file.read_bytes())
    graph = dataclasses.replace(graph, rules=rules) if rules else graph
    cases = cases_of(graph, random, count)
    outputs = [outputs_of(graph, run_graph(graph, case, None)) for case in cases]
    return Subject(name, file, cases, outputs, options)


def random_layers(folder):
    """Return random layers of all kinds."""
    random = np.random.default_rng(14)
    families = [*((KINDS[kind], "int8") for kind in KINDS), (pool, "int8"), (element, "int8")]
    families += [(KINDS["CONV_2D"], "int16"), (KINDS["DEPTHWISE_CONV_2D"], "int16")]
    found = []
    for make, dtype in families:
        for number in range(EACH):
            file = folder / f"{make.__name__}_{dtype}_{number}.tflite"
            file.write_bytes(make(random, dtype).build())
            found.append(subject(file.stem, file, random, 2, Rules(dense_rounds_twice=True)))
    return found


def refused(opwest, folder):
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
    return subject("depthwise", file, random, 1, options=("--kernels", "cmsis-nn-none"))


@pytest.fixture(scope="module")
def made(opwest, tmp_path_factory):
    """Return the application, and the layers in it."""
    cmsis_nn_directory()
    folder = tmp_path_factory.mktemp("layers")
    layers = random_layers(folder)
    options = ("--kernels", "cmsis-nn", "--rounding", "cmsis-nn")
    return application(opwest, folder, [*layers, refused(opwest, folder)], *options), layers


@configured("board", [MVE, DSP, NONE], cost=4)
def test_layers_equal_the_interpreter(workspace, made, modules, board):
    """With MVE, open refuses buffers for another instruction set."""
    app, layers = made
    sources = [next((app / "models" / one.name).rglob("operators.c")).read_text() for one in layers]
    assert sum("arm_" in text for text in sources) > len(layers) / 2
    console = workspace.build(app, board, *OPTIONS.get(board, []), *modules).run("^finished: ")
    assert ("\ndepthwise 0 " in console) == (board not in REFUSED)
    for one in layers:
        results = zip(one.outputs, one.parsed(console, REFUSED.get(board, 0)), strict=True)
        for run, (wanted, found) in enumerate(results):
            for expected, array in zip(wanted, found, strict=True):
                assert np.array_equal(expected, array), f"{one.name}, run {run}"


# --- Suites with golden vectors: CMSIS-NN for one layer on some processors, and layers in stripes


@pytest.fixture(scope="module")
def one_layer(opwest, tmp_path_factory):
    """Return the application of a model whose second layer calls CMSIS-NN on an M3 and an M55."""
    folder = tmp_path_factory.mktemp("candidates")
    file = folder / "m.tflite"
    file.write_bytes(convolutions())
    table = planted_table(file, 1, ["cortex-m3", "cortex-m55"], folder / "planted.yaml")
    words = ["--vectors", 3, "--with", "cmsis-nn", "--tuning", table]
    opwest("import", "tflite", file, "-o", folder / "model", *words)
    opwest("generate", folder / "model" / "manifest.yaml", "-o", folder / "app")
    return folder / "app"


def check_suite(workspace, app, board, *modules):
    """Build and run the suite, in the variant of the board; return the build."""
    built = workspace.build(app / "tests" / "m", board, *OPTIONS.get(board, []), *modules)
    assert re.findall(r"opwest: model m: variant (\w+)\n", built.log) == VARIANTS[board]
    assert "SUITE PASS" in built.run("SUITE (PASS|FAIL)")
    return built


@configured("board", [NONE, MVE])
def test_golden_vectors_with_cmsis_nn(workspace, one_layer, modules, board):
    names = check_suite(workspace, one_layer, board, *modules).symbols
    assert "arm_convolve_wrapper_s8" in names
    # The linker drops the functions that no operator calls.
    assert not any(name.startswith(("arm_depthwise_conv_wrapper", "arm_avgpool")) for name in names)


@configured(board=DSP)
def test_other_images_need_no_cmsis_nn(workspace, one_layer, no_cmsis_nn):
    """On an M4 the same model calls no function of CMSIS-NN: the module is not among those of the build."""
    built = check_suite(workspace, one_layer, DSP, no_cmsis_nn)
    assert not any("CONFIG_CMSIS_NN" in option for option in built.options)
    assert not any("convolve" in name for name in built.symbols)


@configured(board=NONE)
def test_a_missing_module_is_reported(workspace, one_layer, no_cmsis_nn):
    log = workspace.refused(one_layer, NONE, no_cmsis_nn)
    assert "model m needs arm_convolve_wrapper_s8 from CMSIS-NN, Zephyr's module modules/lib/cmsis-nn" in log
    assert "CONFIG_CMSIS_NN=y" in log


@pytest.fixture(scope="module")
def stripes(opwest, tmp_path_factory):
    """Return the application of a model with the least memory, with inputs in the workspace."""
    folder = tmp_path_factory.mktemp("stripes")
    (folder / "m.tflite").write_bytes(pyramid())
    words = ["--optimize", "ram", "--io", "workspace", "--vectors", 3]
    opwest("import", folder / "m.tflite", "-o", folder / "model", *words)
    assert (folder / "model" / "manifest.yaml").read_text().count("stripes") >= 4
    opwest("generate", folder / "model" / "manifest.yaml", "-o", folder / "app")
    return folder / "app"


@configured("board", [DSP, NATIVE, NONE, MVE])
def test_golden_vectors_of_stripes(workspace, stripes, board):
    check_suite(workspace, stripes, board)
