# SPDX-License-Identifier: Apache-2.0
"""Random graphs of layers, compiled by Vela with several schedules, against LiteRT."""

import numpy as np
import pytest
from campaign import sized
from requirements_support import need

need("ethosu", "tflite", "ai_edge_litert")

from models.campaigns import cases_of, graph_of  # noqa: E402
from models.oracle import litert  # noqa: E402

from npu_model.graphs import graph  # noqa: E402
from npu_model.vela_support import compiled  # noqa: E402

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
    content = graph(random)
    [case] = cases_of(graph_of(content), random, 1)
    [[wanted]] = litert(content, [case])
    for options in ((), ("--optimise=Size",), ("--debug-force-legacy-core",)):
        result, tiles = tiled(content, case, *options)
        assert np.array_equal(result, wanted.reshape(result.shape)), options
        if seed == WITH_TILES and options == ("--optimise=Size",):
            assert tiles
