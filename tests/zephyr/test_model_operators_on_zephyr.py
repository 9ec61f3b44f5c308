# SPDX-License-Identifier: Apache-2.0
"""Trained models and their operators in one image, with the C libraries of the boards, against LiteRT.

Trained models are equal to LiteRT's reference kernels. Of a sample of all operators and dtypes (models/sampled.py),
integers are equal, float32 within the bound of each operator.
`make models` adds the other boards and C libraries.
"""

import functools

import numpy as np
import pytest
from cover import configured
from models.oracle import litert
from models.real import model_file, structured_and_random
from requirements_support import need
from sequence_support import Subject, application

need("tflite", "ai_edge_litert")

from models.sampled import INTEGERS, samples  # noqa: E402
from opwest.frontends.read import read_model  # noqa: E402

pytestmark = pytest.mark.zephyr

ALONE = "-DCONFIG_MULTITHREADING=n"
"""Debian's newlib and picolibc have no locks for threads."""
LIBRARIES = {
    "glibc": [],
    "minimal": ["-DCONFIG_MINIMAL_LIBC=y"],
    "newlib": ["-DCONFIG_NEWLIB_LIBC=y", ALONE],
    # Zephyr's file of this toolchain does not declare that it has picolibc.
    "picolibc": ["-DCONFIG_PICOLIBC=y", "-DTOOLCHAIN_HAS_PICOLIBC=ON", ALONE],
}
ARM = ["mps2/an385", "mps2/an386", "mps3/corstone300/an547"]
CONFIGURATIONS = [
    *((board, library) for board in ARM for library in ("newlib", "minimal", "picolibc")),
    ("native_sim/native/64", "glibc"),
]
MODELS = ["hello_world_float", "hello_world_int8", "ad01_fp32", "ad01_int8", "kws_int8", "ic_int8", "vww_int8"]
WITH_MODELS = [("mps2/an385", "newlib"), ("native_sim/native/64", "glibc")]
"""The float models need a C library with math.h."""
INPUTS = [1, 7, 60]  # of structured_and_random: a ramp, a wave, a random one


def trained(name):
    """Return a trained model, or skip."""
    file = model_file(f"{name}.tflite")
    content = file.read_bytes()
    [graph] = read_model(content, str(file))
    cases = structured_and_random(graph.inputs[0].shape, graph.inputs[0].dtype)
    chosen = [cases[i] for i in INPUTS]
    return Subject(name, file, chosen, litert(content, chosen))


def check_trained(subjects, console):
    """Compare the results of trained models in an image with those of LiteRT."""
    for subject in subjects:
        for number, (expected, [found]) in enumerate(zip(subject.outputs, subject.parsed(console), strict=True)):
            assert np.array_equal(found, expected[0]), f"{subject.name}, input {INPUTS[number]}"


@pytest.fixture(scope="module")
def files():
    """Return the files with their inputs and the results of LiteRT."""
    return samples()


@pytest.fixture(scope="module")
def applications(files, opwest, tmp_path_factory):
    """Return a function that makes the application for a board and a C library, once; trained models are the last."""

    @functools.cache
    def made(small, models):
        folder, subjects = tmp_path_factory.mktemp("operators"), []
        for one in files:
            if one.name in INTEGERS or not small:
                file = folder / f"{one.name}.tflite"
                file.write_bytes(one.content)
                subjects.append(Subject(one.name, file, one.inputs, one.outputs))
        subjects += [trained(name) for name in MODELS if models]
        return application(opwest, folder, subjects), subjects

    # The minimal library has no functions of real numbers.
    return lambda board, library: made(library == "minimal", (board, library) in WITH_MODELS)


@configured("board, library", WITH_MODELS)
def test_models_equal_litert(workspace, applications, board, library):
    app, subjects = applications(board, library)
    console = workspace.build(app, board, *LIBRARIES[library]).run("^finished: ")
    check_trained([one for one in subjects if one.name in MODELS], console)


@configured("board, library", CONFIGURATIONS)
def test_operators_equal_litert(workspace, files, applications, record_property, board, library):
    if library == "picolibc":
        need("arm-none-eabi picolibc")
    app, subjects = applications(board, library)
    built = workspace.build(app, board, *LIBRARIES[library])
    option = {"glibc": "EXTERNAL_LIBC", "minimal": "MINIMAL_LIBC", "newlib": "NEWLIB_LIBC"}.get(library, "PICOLIBC")
    assert f"CONFIG_{option}=y" in built.options
    console = built.run("^finished: ")
    by_name = {one.name: one for one in files}
    rows = []
    for subject in subjects:
        if subject.name in MODELS:
            continue
        found = subject.parsed(console)
        rows += by_name[subject.name].check(found, f"{board}, {library}")
    record_property("board", [f"{board}, {library}", rows])
