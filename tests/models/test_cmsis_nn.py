# SPDX-License-Identifier: Apache-2.0
"""The variants that call CMSIS-NN on this machine: results, and sizes of buffers for every instruction set."""

import ctypes
import dataclasses
import subprocess

import numpy as np
import pytest
from campaign import sized
from cmsis_nn_support import cmsis_nn_directory
from in_process import fail, succeed
from kernels.padded_layers import padded_layer
from kernels.reference import results_of
from models.campaigns import CASES, CONFIGURATIONS, cases_of, graph_of
from models.executor import Library, interpreted
from models.layers import KINDS, quantised
from models.made import of_one
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.graph.types import Rules
from opwest.compiler.ir.operations import Convolution, Depthwise
from opwest.compiler.kernels.cmsis_nn import sizes
from opwest.compiler.kernels.cmsis_nn.sizes import EXTENSIONS, VARIANTS
from opwest.compiler.lowering.builder import lower_graph
from opwest.compiler.output.emit import emit_program
from opwest.compiler.semantics.windows import Window
from opwest.tuning import random_layers
from opwest.zephyr.cmsis_nn import required_sources


def pool(random, dtype):
    shape = (int(random.integers(1, 3)), 9, 8, int(random.integers(1, 40)))
    numbers = quantised(random, dtype)
    limits = {"stride_h": 4, "stride_w": 4, "filter_height": 6, "filter_width": 6}
    options = {"padding": str(random.choice(["SAME", "VALID"]))}
    options |= {name: int(random.integers(1, most)) for name, most in limits.items()}
    options["fused_activation_function"] = str(random.choice(["NONE", "RELU", "RELU6"]))
    kind = str(random.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
    return of_one(kind, [(dtype, shape, *numbers)], (dtype, *numbers), **options)


def element(random, dtype):
    shape = (1, int(random.integers(1, 50)))
    one, other = (quantised(random, dtype) for _ in range(2))
    kind = str(random.choice(["ADD", "MUL"]))
    wide = one[0] + other[0] if kind == "ADD" else one[0] * other[0] * 90
    scale, zero = wide * random.uniform(0.6, 2), int(random.integers(-128, 128))
    activation = str(random.choice(["NONE", "RELU", "RELU6"]))
    inputs = [(dtype, shape, *one), (dtype, shape, *other)]
    return of_one(kind, inputs, (dtype, scale, zero), fused_activation_function=activation)


FAMILIES = {**KINDS, "POOL": pool, "ELEMENTS": element}
LEAST = {"CONV_2D": 0.4, "DEPTHWISE_CONV_2D": 0.4, "FULLY_CONNECTED": 0.3, "POOL": 1.0, "ELEMENTS": 0.6}
"""The least part of the random layers that CMSIS-NN must take, so that a test cannot pass without calls."""


CALLED = """\
arm_convolve_wrapper_s8 arm_convolve_wrapper_s8_get_buffer_size arm_convolve_wrapper_s16
arm_convolve_wrapper_s16_get_buffer_size arm_depthwise_conv_wrapper_s8 arm_depthwise_conv_wrapper_s8_get_buffer_size
arm_depthwise_conv_wrapper_s16 arm_depthwise_conv_wrapper_s16_get_buffer_size arm_fully_connected_s8
arm_fully_connected_s8_get_buffer_size arm_avgpool_s8 arm_avgpool_s8_get_buffer_size arm_max_pool_s8
arm_elementwise_add_s8 arm_elementwise_mul_s8
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Compile CMSIS-NN as a library, without the warnings of opwest's own code."""
    folder, root = tmp_path_factory.mktemp("cmsis_nn"), cmsis_nn_directory()
    (folder / "calls.txt").write_text(CALLED)
    sources = required_sources(root, [folder / "calls.txt"])
    include = f"-I{root / 'Include'}"
    subprocess.run(["cc", "-w", "-O1", "-fPIC", "-c", include, *map(str, sources)], cwd=folder, check=True)
    made = folder / "libcmsis_nn.a"
    subprocess.run(["ar", "rc", made, *(f"{one.stem}.o" for one in sources)], cwd=folder, check=True)
    return made


@pytest.mark.parametrize(
    ("kind", "dtype"), [*((kind, "int8") for kind in FAMILIES), ("CONV_2D", "int16"), ("DEPTHWISE_CONV_2D", "int16")]
)
@pytest.mark.parametrize("variant", sized(list(VARIANTS)[:1], list(VARIANTS)))
def test_results(kind, dtype, variant, tmp_path, archive):
    root = cmsis_nn_directory()
    random = np.random.default_rng([ord(c) for c in kind + dtype])
    rules = Rules(dense_rounds_twice=True)
    contents = [FAMILIES[kind](random, dtype).build() for _ in range(CONFIGURATIONS)]
    graphs = [dataclasses.replace(graph_of(content), rules=rules) for content in contents]
    programs = [lower_graph(graph, "made.tflite", Diagnostics()) for graph in graphs]
    emitted = [emit_program(program, "made by a test", variant, prefix="q_") for program in programs]
    library = Library(programs, tmp_path, (f"-I{root / 'Include'}", archive), variant)
    called = 0
    for number, graph in enumerate(graphs):
        called += sum(step.variant == variant for step in emitted[number].steps)
        for case in cases_of(graph, random, CASES):
            wanted = interpreted(graph, case)
            found = library.run(number, case)
            for one, two in zip(wanted, found, strict=True):
                assert np.array_equal(one, two.reshape(one.shape)), f"configuration {number}"
    assert called >= LEAST[kind] * len(graphs)


@pytest.mark.parametrize("kind", [Convolution, Depthwise], ids=lambda one: one.__name__)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_windows_in_the_padding(kind, dtype, tmp_path, archive):
    variant = next(iter(VARIANTS))
    made = [padded_layer(kind, number, dtype) for number in range(sized(120, 1000))]
    programs = [program for _, program in made if program is not None]
    with_data = [one for one in programs if _has_data(one)]
    programs = with_data + [one for one in programs if not _has_data(one)][: sized(12, 1000)]
    inputs = [random_layers.inputs_of(np.random.default_rng(n), one, n) for n, one in enumerate(programs)]
    flags = (f"-I{cmsis_nn_directory() / 'Include'}", archive)
    library = Library(programs, tmp_path, flags, variant)
    called = 0
    for number, program in enumerate(programs):
        [operation] = program.operations
        [found] = library.run(number, inputs[number])
        wanted = results_of(operation, *inputs[number])
        assert np.array_equal(found.reshape(wanted.shape), wanted), operation
        is_call = library.emitted[number].steps[0].variant == variant
        assert _has_data(program) or not is_call, operation
        called += is_call
    assert called > 0.7 * len(with_data) > 10


def _has_data(program):
    [operation] = program.operations
    return operation.window.has_data(operation.inputs[0].shape[1:3])


def test_fully_connected_layers_that_round_once_stay_portable():
    model = KINDS["FULLY_CONNECTED"](np.random.default_rng(2), "int8")
    program = lower_graph(graph_of(model.build()), "made.tflite", Diagnostics())
    emitted = emit_program(program, "made by a test", "cmsis-nn")
    assert [step.variant for step in emitted.steps] == ["portable"]
    assert emitted.external == ()


def test_commands(tmp_path, monkeypatch):
    root = cmsis_nn_directory()
    pool(np.random.default_rng(2), "int8").save(tmp_path / "model.tflite")
    commands = [
        ["import", "model.tflite", "-o", "model", "--kernels", "cmsis-nn"],
        ["generate", "model/manifest.yaml", "-o", "app"],
        ["run", "app", "--host", "--cmsis-nn", str(root)],
    ]
    monkeypatch.chdir(tmp_path)
    for words in commands:
        done = succeed(*words)
    assert "#include <arm_nnfunctions.h>" in (tmp_path / "model" / "operators.c").read_text()
    assert "model: run returned 0" in done.stderr + done.stdout


def test_rounding_contradicts_the_runtime(tmp_path):
    KINDS["FULLY_CONNECTED"](np.random.default_rng(2), "int8").save(tmp_path / "model.tflite")
    file, options = tmp_path / "model.tflite", ["--rounding", "cmsis-nn", "--compare", "3"]
    err = fail("import", file, "-o", tmp_path / "model", *options).stderr
    assert "model.tflite: error: --compare with --rounding cmsis-nn\n  expected: one of them\n" in err


SIZES = """\
#include <arm_nnfunctions.h>
#define DIMS(x) {(x)[0], (x)[1], (x)[2], (x)[3]}
#define TILE(x) {(x)[1], (x)[0]}
#define SUFFIXES(name, ...) \\
	if (extension == 0) return name(__VA_ARGS__); \\
	if (extension == 1) return name##_dsp(__VA_ARGS__); \\
	return name##_mve(__VA_ARGS__);

/* window: stride, dilation, padding, rows and columns of the result, those of the filter, multiplier */
int32_t size_of(int kind, int extension, const int32_t *data, const int32_t *window)
{
	const int32_t results = window[10] * data[3];
	const cmsis_nn_conv_params layer = {0, 0, TILE(window), TILE(window + 4), TILE(window + 2), {0, 0}};
	const cmsis_nn_dw_conv_params depthwise = {0, 0, window[10], TILE(window), TILE(window + 4),
						   TILE(window + 2), {0, 0}};
	const cmsis_nn_dims in = DIMS(data);
	const cmsis_nn_dims filter = {results, window[8], window[9], data[3]};
	const cmsis_nn_dims by_channel = {1, window[8], window[9], results};
	const cmsis_nn_dims out = {data[0], window[6], window[7], results};

	switch (kind) {
	case 0: SUFFIXES(arm_convolve_wrapper_s8_get_buffer_size, &layer, &in, &filter, &out)
	case 1: SUFFIXES(arm_convolve_wrapper_s16_get_buffer_size, &layer, &in, &filter, &out)
	case 2: SUFFIXES(arm_depthwise_conv_wrapper_s8_get_buffer_size, &depthwise, &in, &by_channel, &out)
	case 3: SUFFIXES(arm_depthwise_conv_wrapper_s16_get_buffer_size, &depthwise, &in, &by_channel, &out)
	default: SUFFIXES(arm_avgpool_s8_get_buffer_size, window[7], data[3])
	}
}
"""


def test_sizes_of_buffers(tmp_path):
    root = cmsis_nn_directory()
    (tmp_path / "sizes.c").write_text(SIZES)
    sources = [tmp_path / "sizes.c", *(root / "Source").rglob("*get_buffer_sizes*.c")]
    flags = ["-w", "-fPIC", "-shared", f"-I{root / 'Include'}"]
    subprocess.run(["cc", *flags, *map(str, sources), "-o", tmp_path / "sizes.so"], check=True)
    size_of = ctypes.CDLL(str(tmp_path / "sizes.so")).size_of
    random = np.random.default_rng(5)
    seen = set()
    for _ in range(3000):
        rows, columns, filter_rows, filter_columns = (int(n) for n in random.integers(1, 9, 4))
        if random.random() < 0.3:
            rows = filter_rows = 1
        if random.random() < 0.2:
            filter_rows = filter_columns = 1
        data = (int(random.choice([1, 1, 2])), rows, columns, int(random.choice([1, 2, 3, 4, 8, 130])))
        pair = tuple(int(n) for n in random.integers(1, 4, 2))
        dilation = tuple(int(n) for n in random.choice([1, 1, 2], 2))
        before = tuple(int(n) for n in random.integers(0, 3, 2))
        result = tuple(int(n) for n in random.integers(1, 9, 2))
        window = Window((filter_rows, filter_columns), pair, dilation, before, result)
        multiplier = int(random.choice([1, 1, 2]))
        numbers = (*pair, *dilation, *before, *result, filter_rows, filter_columns, multiplier)
        for number, extension in enumerate(EXTENSIONS):
            own = [
                sizes.convolution("int8", data, window, extension),
                sizes.convolution("int16", data, window, extension),
                sizes.depthwise("int8", data, multiplier * data[3], window, extension),
                sizes.depthwise("int16", data, multiplier * data[3], window, extension),
                sizes.average_pool(data[3], extension),
            ]
            for kind, size in enumerate(own):
                if extension == "none" and kind in (2, 3, 4):
                    assert size == 0 or kind == 3  # without an instruction set there is a function for all of them
                wanted = size_of(kind, number, (ctypes.c_int32 * 4)(*data), (ctypes.c_int32 * 11)(*numbers))
                assert size == wanted, (kind, extension, data, window, multiplier)
                seen.add((kind, extension, size > 0))
    assert {(0, one, True) for one in EXTENSIONS} | {(2, "mve", True), (2, "dsp", True), (4, "dsp", True)} <= seen
