# SPDX-License-Identifier: Apache-2.0
"""Random models of one operator, and graphs of layers with several schedules, compiled by Vela, against LiteRT."""

from subprocess import CalledProcessError

import numpy as np
import pytest
from campaign import sized
from requirements_support import need, skip_here

need("ethosu", "tflite", "ai_edge_litert")

from models.campaigns import cases_of, graph_of  # noqa: E402
from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402

from npu_model.configurations import configurations, with_shapes  # noqa: E402
from npu_model.graphs import graph as random_graph  # noqa: E402
from npu_model.vela_support import OnCpuError, compiled, interpreted  # noqa: E402

ALL = configurations()
MODELS = sized(1, 25)
"""Models of one operator and dtype."""
SAMPLE = (
    *("CONV_2D int8", "CONV_2D uint8", "CONV_2D int16", "DEPTHWISE_CONV_2D int8", "DEPTHWISE_CONV_2D int16"),
    *("FULLY_CONNECTED int8", "MAX_POOL_2D int8", "ADD int8", "ADD uint8", "ADD int16", "SUB int8", "MUL int8"),
    *("MINIMUM int8", "MUL int16", "SOFTMAX int8", "SOFTMAX int16", "ABS int8", "HARD_SWISH int8", "LEAKY_RELU int8"),
    *("LEAKY_RELU int16", "LOGISTIC uint8", "TANH int8", "RELU6 int16", "RSQRT int8", "QUANTIZE int8"),
    *("CONCATENATION int8", "PACK int8", "PAD int16", "SLICE int8", "SPLIT_V int8", "TILE int8", "TRANSPOSE int8"),
)
"""Operators that Vela always gives to the NPU: they are compiled together."""
SOMETIMES = {
    **dict.fromkeys(("AVERAGE_POOL_2D int8", "MEAN int8"), 1),
    "RESIZE_BILINEAR int8": 7,
    **dict.fromkeys(("TRANSPOSE_CONV int8", "BATCH_MATMUL int8"), 0),
}
"""Operators that Vela leaves to the CPU if their options do not suit it: seeds whose first model is for the NPU."""


TOLERANCES = {"FULLY_CONNECTED int16": 1}
"""Vela reduces the factor of int16 to 16 bits in every layer, LiteRT not in this one."""


def made(name, random):
    """Return the file of a random model, its inputs, and the reference of each: LiteRT's results.

    That of FULLY_CONNECTED is the interpreter's, which rounds twice like the NPU.
    """
    model = ALL[name].build(random)
    content = with_shapes(model)
    graph = graph_of(content)
    cases = list(ALL[name].cases(graph, random))
    if name in ("FULLY_CONNECTED int8", "FULLY_CONNECTED uint8"):
        return model, cases, [interpreted(graph, case) for case in cases]
    return model, cases, litert(content, cases)


def compare(name, found, wanted):
    for one, other in zip(found, wanted, strict=True):
        distance = abs(one.astype(np.int64) - other.reshape(one.shape).astype(np.int64))
        limit = TOLERANCES.get(name, 0)
        assert distance.max(initial=0) <= limit, f"{name}: {(distance > 0).sum()} of {distance.size} differ"


def test_sample_of_operators():
    random, whole = np.random.default_rng(17), Model()
    inputs, references = [], []
    for number, name in enumerate(SAMPLE):
        model, cases, wanted = made(name, random)
        [graph] = model.subgraphs
        for tensor in graph.tensors:
            tensor.name = f"part{number}_{tensor.name}"
        for one, other in zip(vars(whole.graph).values(), vars(graph).values(), strict=True):
            one.extend(other)
        inputs += cases[0]
        references.append(wanted[0])
    found = compiled(whole.build()).run(inputs)
    for name, wanted in zip(SAMPLE, references, strict=True):
        part, found = found[: len(wanted)], found[len(wanted) :]
        compare(name, part, wanted)


@pytest.mark.parametrize("name", sized(tuple(SOMETIMES), tuple(ALL)))
def test_operator(name):
    random, done = np.random.default_rng(SOMETIMES.get(name, 5)), 0
    for _ in range(20 + 2 * MODELS):
        model, cases, wanted = made(name, random)
        try:
            npu = compiled(model.build())
        except OnCpuError:
            continue
        except CalledProcessError as error:
            # Vela has stricter rules for an operator than LiteRT, and cannot place some copies.
            said = error.stderr + error.stdout
            assert "Does not have valid TFLite Semantics" in said or "could not run on NPU" in said
            continue
        for case, one in zip(cases, wanted, strict=True):
            compare(name, npu.run(case), one)
        done += 1
        if done == MODELS:
            return
    if not done:
        skip_here(f"Vela gave no model of {name} to the NPU")


@pytest.mark.parametrize("config", ["ethos-u55-32", "ethos-u55-64", "ethos-u55-256"])
def test_other_sizes_of_the_npu(config):
    random = np.random.default_rng(23)
    for name in sized(("CONV_2D int8",), ("CONV_2D int8", "DEPTHWISE_CONV_2D int8", "SOFTMAX int8", "TANH int8")):
        model, cases, wanted = made(name, random)
        compare(name, compiled(model.build(), f"--accelerator-config={config}").run(cases[0]), wanted[0])


WITH_TILES = 8
"""The seed of a graph whose stripes use rolling buffers with `--optimise=Size`."""


def tiled(content, case, *options):
    """Return the result of a graph, and the number of its layers that read several tiles."""
    found = []

    def note(command, registers, _memory):
        if command.name in ("NPU_OP_CONV", "NPU_OP_DEPTHWISE", "NPU_OP_POOL"):
            found.append(any(registers[f"IFM_BASE{i}"] for i in (1, 2, 3)))

    [result] = compiled(content, *options).run(case, note)
    return result, sum(found)


@pytest.mark.parametrize("seed", sized((4, WITH_TILES), range(60)))
def test_graph(seed):
    random = np.random.default_rng(seed)
    content = random_graph(random)
    [case] = cases_of(graph_of(content), random, 1)
    [[wanted]] = litert(content, [case])
    for options in ((), ("--optimise=Size",), ("--debug-force-legacy-core",)):
        result, tiles = tiled(content, case, *options)
        assert np.array_equal(result, wanted.reshape(result.shape)), options
        if seed == WITH_TILES and options == ("--optimise=Size",):
            assert tiles
