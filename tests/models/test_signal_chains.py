# SPDX-License-Identifier: Apache-2.0
"""From sound to features, scores and sound: signal operators among others, with state, as files and applications."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from in_process import succeed
from models.campaigns import graph_of
from models.executor import Library, interpreted, program_of
from models.signal_chains import CHAINS, CHANNELS, FRAME, STEP, VALID, chain, sound
from models.signal_models import digest
from models.signal_oracle import RESULTS, by_package
from requirements_support import need_compiler, skip_here

RECORDED = json.loads(RESULTS.read_text())
"""By chain: a digest of the results of tflite-micro's interpreter."""
PREPROCESSORS = Path("tensorflow/lite/micro/examples/micro_speech/models")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The emitted C of all chains, after all passes."""
    graphs = [graph_of(chain(name)[0], simplified=True) for name in CHAINS]
    return Library([program_of(graph) for graph in graphs], tmp_path_factory.mktemp("chains"))


@pytest.mark.parametrize("name", CHAINS)
def test_recorded_results(name, library):
    content, cases = chain(name)
    graph, states = graph_of(content), ({}, {})
    found = [interpreted(graph, case, states[0]) for case in cases]
    ran = [library.run([*CHAINS].index(name), case, states[1]) for case in cases]
    assert len(np.unique([result for result, *_ in found])) > 8
    assert digest(found[VALID:]) == RECORDED[name], "interpreter"
    assert digest(ran[VALID:]) == RECORDED[name], "emitted C"


@pytest.mark.parametrize("name", CHAINS)
def test_results_of_tflite_micro(name, tmp_path):
    content, cases = chain(name)
    graph, state = graph_of(content), {}
    wanted = by_package(tmp_path, content, cases, len(graph.outputs))
    found = [interpreted(graph, case, state) for case in cases]
    assert digest(found[VALID:]) == digest(wanted[VALID:]) == RECORDED[name]


def ran(folder, frames):
    """Import model.tflite, and return the outputs of a stream of frames by name, under sanitizers."""
    told = succeed("import", folder / "model.tflite", "-o", folder / "model")
    succeed("generate", "-q", folder / "model/manifest.yaml", "-o", folder / "app")
    np.save(folder / "frames.npy", frames)
    [name] = yaml.safe_load((folder / "model/manifest.yaml").read_text())["run"]["inputs"]
    succeed(
        "run", folder / "app", "--host", "--sanitize", "--stream", f"{name}={folder / 'frames.npy'}",
        "--output-dir", folder / "out",
    )  # fmt: skip
    return told, {path.stem: np.load(path) for path in (folder / "out").iterdir()}


def test_application(tmp_path):
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    content, cases = chain("sound to scores")
    (tmp_path / "model.tflite").write_bytes(content)
    told, found = ran(tmp_path, np.stack([frame for [frame] in cases]))
    names = ("scores", "is_frame", "is_stack")
    rows = [[found[name][run] for name in names] for run in range(VALID, len(cases))]
    assert digest(rows) == RECORDED["sound to scores"]
    assert found["is_frame"].all() and found["is_stack"].tolist() == [False, *[True] * (len(cases) - 1)]
    text = (tmp_path / "model/manifest.yaml").read_text()
    states = {name: (one["dtype"], one["shape"]) for name, one in yaml.safe_load(text)["run"]["state"].items()}
    assert sorted(states.values()) == [
        ("int16", [1, FRAME - STEP]),
        ("int16", [2, 2 * CHANNELS]),
        ("int32", []),
        ("uint32", [CHANNELS]),
    ]
    remark = " ".join(text.replace("#", "").split())
    assert "opwest's own interpreter of the model, because LiteRT" in remark
    assert "Encountered unresolved custom op: SignalFramer. tests:" in remark
    assert "(SignalFilterBankSpectralSubtraction)" in told.stdout


@pytest.mark.parametrize("name", ["audio_preprocessor_int8", "audio_preprocessor_float"])
def test_audio_preprocessor(name, tmp_path):
    if "OPWEST_TFLITE_MICRO" not in os.environ:
        skip_here("OPWEST_TFLITE_MICRO names no tree of tflite-micro")
    content = (Path(os.environ["OPWEST_TFLITE_MICRO"]) / PREPROCESSORS / f"{name}.tflite").read_bytes()
    (tmp_path / "model.tflite").write_bytes(content)
    frames = sound((1, 480), 100)
    wanted = by_package(tmp_path, content, [[frame] for frame in frames], 1)
    [found] = ran(tmp_path, frames)[1].values()
    assert digest([[one] for one in found]) == digest(wanted)
