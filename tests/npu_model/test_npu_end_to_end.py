# SPDX-License-Identifier: Apache-2.0
"""Models compiled by Vela, imported, generated and run on the host: the model of the NPU runs each launch.

All inputs of a model are runs of one process in one workspace, so the arena has the content of the run before.
"""

import numpy as np
import pytest
from campaign import sized
from in_process import succeed
from requirements_support import need

need("cc", "ethosu", "tflite", "ai_edge_litert")

from ethos_u_payloads import STOP, convolution, copy, payload, words_of  # noqa: E402
from importers.vela_made import whole  # noqa: E402
from models.campaigns import cases_of, graph_of  # noqa: E402
from models.oracle import litert  # noqa: E402
from models.real import model_file, structured_and_random  # noqa: E402
from opwest.base.diagnostics import OpwestError  # noqa: E402

from npu_model.application import application, generated, vela  # noqa: E402
from npu_model.mixed import MIXED, random_mixed  # noqa: E402
from npu_model.vela_support import OPTIONS, compiled, interpreted  # noqa: E402

_SAMPLE = (("kws_int8", "tflite"), ("kws_int8", "raw"), ("ad01_int8", "command"))
_OTHERS = (
    *(("ad01_int8", "tflite"), ("ic_int8", "tflite"), ("vww_int8", "tflite"), ("ic_int8", "raw")),
    ("vww_int8", "command"),
)
TRAINED = sized(_SAMPLE, (*_SAMPLE, *_OTHERS))
"""Models, and the way of the import: Vela's .tflite or .npz file, or `opwest import tflite --npu`."""
INPUTS = sized(2, 20)
SAMPLE = (("branches", "Sram_Only"), ("alternating", "default"), ("no weights", "default"))
"""They have operators on the processor before, between and after subgraphs, and tensors that are kept across them."""
WHOLE = (*((name, "default") for name in MIXED), *(("branches", one) for one in OPTIONS if one != "default"))
WITH_FOUR_PROGRAMS = 4
"""The seed of a random graph with four subgraphs for the NPU."""


def imported(content, folder, way):
    if way != "command":
        options = ("--output-format=raw",) if way == "raw" else ()
        return application(vela(content, folder, *options), folder)
    file = folder / "m.tflite"
    file.write_bytes(content)
    succeed("import", "tflite", file, "-o", folder / "model", "--npu", "ethos-u55-128")
    return generated(folder)


def compare(results, expected, record_property, name, reference):
    """Compare bit for bit, and record the numbers of runs, values and differing values."""
    pairs = [
        (one, other.reshape(one.shape))
        for some, wanted in zip(results, expected, strict=True)
        for one, other in zip(some, wanted, strict=True)
    ]
    differing = sum(int((one != other).sum()) for one, other in pairs)
    values = sum(one.size for one, _ in pairs)
    record_property("end to end", (name, reference, len(results), values, differing))
    assert all(one.dtype == other.dtype for one, other in pairs)
    assert differing == 0
    assert len(np.unique(np.concatenate([one.reshape(-1) for one, _ in pairs]))) > 2


@pytest.mark.parametrize(("name", "way"), TRAINED)
def test_trained_model(name, way, tmp_path, record_property):
    content = model_file(f"{name}.tflite").read_bytes()
    graph, direct = graph_of(content), compiled(content)
    cases = structured_and_random(graph.inputs[0].shape, graph.inputs[0].dtype, max(INPUTS, 16))[-INPUTS:]
    found = imported(content, tmp_path, way)
    assert found.steps() == ["npu"]
    results = found.run(cases)
    compare(results, [direct.run(case) for case in cases], record_property, f"{name}, {way}", "NPU model")
    wanted = [interpreted(graph, case) for case in cases]
    compare(results, wanted, record_property, f"{name}, {way}", "interpreter")


@pytest.mark.parametrize(("name", "options"), sized(SAMPLE, WHOLE))
def test_operators_of_the_processor(name, options, tmp_path, record_property):
    content = MIXED[name].build()
    mode = {"memory_mode": "Sram_Only"} if options == "Sram_Only" else {}
    found = application(vela(content, tmp_path, *OPTIONS[options]), tmp_path, **mode)
    assert " ".join("npu" if one == "npu" else "cpu" for one in found.steps()) == MIXED[name].places
    cases = cases_of(graph_of(content), np.random.default_rng(5), INPUTS)
    compare(found.run(cases), litert(content, cases), record_property, f"{name}, {options}", "LiteRT")


@pytest.mark.parametrize("seed", sized((WITH_FOUR_PROGRAMS,), range(24)))
def test_random_graph(seed, tmp_path, record_property):
    """Up to two kinds of operators are left to the processor."""
    random = np.random.default_rng(seed)
    content, option = random_mixed(random)
    found = application(vela(content, tmp_path, option), tmp_path)
    assert {"npu"} < set(found.steps())
    if seed == WITH_FOUR_PROGRAMS:
        assert found.steps().count("npu") == 4
    cases = cases_of(graph_of(content), random, sized(2, 4))
    compare(found.run(cases), litert(content, cases), record_property, "random graphs", "LiteRT")


def test_program_that_writes_its_weights_is_refused(tmp_path):
    """On a device they can be in flash."""
    stream = payload([*words_of(convolution(at=16, to=48)), *words_of(copy((1, 16), (0, 0), 16)), STOP])
    file = tmp_path / "m_vela.tflite"
    file.write_bytes(whole(stream).build())
    with pytest.raises(OpwestError, match=r"bytes 0 to 15 of region 0, which is constant"):
        application(file, tmp_path)
