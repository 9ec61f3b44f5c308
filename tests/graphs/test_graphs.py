# SPDX-License-Identifier: Apache-2.0
"""Random graphs, and the graphs of faults that were found before."""

import copy
import os
import sys
from pathlib import Path

import pytest
from campaign import sized
from requirements_support import need, skip_here

need("cc", "tflite", "ai_edge_litert", "onnx", "onnxruntime", "arm-none-eabi-gcc", "qemu-system-arm")

sys.path[:0] = [str(Path(__file__).parents[1])]

import numpy as np  # noqa: E402
from graphs import campaign as graphs_campaign  # noqa: E402
from graphs import shrink  # noqa: E402
from graphs.campaign import EXACT, FAULTS, ORACLE, REFUSED, Outcome, Runner, Subject, cases_of, equal  # noqa: E402
from graphs.runs import campaign, table  # noqa: E402
from graphs.shrink import keep, stored  # noqa: E402
from models.campaigns import graph_of  # noqa: E402
from models.oracle import litert  # noqa: E402
from opwest.base.diagnostics import OpwestError  # noqa: E402
from opwest.compiler.lowering import passes  # noqa: E402
from opwest.compiler.request import Options  # noqa: E402
from opwest.imports.convert import import_model  # noqa: E402

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases"

GRAPHS = sized(56, 20000)


def test_random_graphs(tmp_path):
    """Each graph is exact, or refused for a limit of memory or flash; every mode, option and core has a share."""
    outcomes = campaign(0, GRAPHS, 1, 1e9)
    faults = [one for one in outcomes if one["outcome"] in FAULTS]
    assert not faults, "\n".join(keep(Runner(tmp_path, {}), one) for one in faults[:3])
    assert not [one for one in outcomes if one["outcome"] == ORACLE]
    refused = [one["detail"] for one in outcomes if one["outcome"] == REFUSED]
    expected = ("--max-ram", "--max-flash", "the scales give the multiplier")
    assert not [one for one in refused if not any(word in one for word in expected)]
    assert sum(one["outcome"] == EXACT for one in outcomes) > 0.9 * GRAPHS
    assert {one["core"] for one in outcomes} == {None, "mla", "dsp", "mve"}
    assert len({(one["format"], one["mode"]) for one in outcomes}) == 9
    assert {"optimize", "caller_memory", "max_ram", "max_flash", "prefer", "float_io", "kernels", "exact"} <= {
        name for one in outcomes for name in one["options"]
    }
    assert len({kind for one in outcomes for kind in one["kinds"]}) > 60
    print("\n".join(table(outcomes)))


def test_kernels_that_abort_do_not_end_a_campaign(tmp_path, monkeypatch):
    """The results are then those of the graph as it was read; the next graph has those of the runtime."""
    runner = Runner(tmp_path, {})
    monkeypatch.setattr(graphs_campaign, "litert", aborting)
    found = runner.run(0)
    assert (found.outcome, found.reference) == (EXACT, "the graph as it was read")
    assert "float_io" in found.options
    monkeypatch.undo()
    found = runner.run(0)
    assert (found.outcome, found.reference) == (EXACT, "LiteRT")


def aborting(content, cases):
    """End the process as a kernel of a runtime does."""
    os.abort()


def test_a_fault_is_shrunk_and_stored(tmp_path, monkeypatch):
    """A wrong pass is found in a graph of many operators, which is reduced to a few."""
    right = passes._read

    def wrong(reader, value, needed):
        found = right(reader, value, needed)
        found[: len(found) // 2] = False
        return found

    monkeypatch.setattr(passes, "_read", wrong)
    monkeypatch.setattr(passes, "UNIT", 1)
    monkeypatch.setattr(shrink, "STORE", tmp_path / "store")
    runner = Runner(tmp_path, {})
    for seed in range(40):
        outcome = runner.run(seed)
        if outcome.format == "tflite" and outcome.outcome in FAULTS and outcome.operators > 8:
            break
    text = keep(runner, outcome)
    [(name, content, options, cases, expected)] = stored()
    assert name == f"seed_{seed}" and text.startswith(f"seed {seed}: internal: ") and "'unused channels'" in text
    made, subject = Outcome(0, "tflite", "", 0, options, EXACT), Subject(content, cases, expected, False)
    assert runner.judge(copy.copy(made), subject).outcome == outcome.outcome
    assert len(graph_of(content).nodes) < outcome.operators / 2
    monkeypatch.undo()
    assert runner.judge(made, subject).outcome == EXACT, made.detail


def shared_files(folder):
    """Return the files of ../shared, or one name for the test that is skipped."""
    return sorted((SHARED / folder).rglob("*.tflite")) or [SHARED / folder]


@pytest.mark.parametrize("file", shared_files("graphs"), ids=lambda file: f"{file.parent.name}-{file.stem}")
@pytest.mark.parametrize("optimize", ["speed", "ram"])
def test_shared_graphs(file, optimize, tmp_path):
    if not file.is_file():
        skip_here(f"no directory {SHARED}")
    content = file.read_bytes()
    cases = cases_of(graph_of(content).inputs, 1)
    expected = litert(content, cases)
    if (file.parent / "inputs.npz").exists():
        with np.load(file.parent / "inputs.npz") as given, np.load(file.parent / "expected.npz") as wanted:
            for number in range(3):
                cases.append([given[name][number] for name in given.files])
                expected.append([wanted[name][number] for name in wanted.files])
    made = Outcome(0, "tflite", "", 0, {"optimize": optimize}, EXACT)
    found = Runner(tmp_path, {}).judge(made, Subject(content, cases, expected, False))
    assert found.outcome == EXACT, found.detail


@pytest.mark.parametrize("name", ["div0", "zero_size"])
def test_shared_tflite_files(name, tmp_path):
    file = SHARED / "tflite" / f"{name}.tflite"
    if not file.is_file():
        skip_here(f"no directory {SHARED}")
    if name == "zero_size":
        with pytest.raises(OpwestError, match=r"input 't0' of the model is empty: shape \[1, 0, 4\]"):
            import_model(file, tmp_path / "out", Options())
        return
    import_model(file, tmp_path / "out", Options())
    assert (tmp_path / "out" / "operators.c").read_text().count("return -EINVAL;") == 2


@pytest.mark.parametrize(("name", "content", "options", "cases", "expected"), list(stored()))
def test_regressions(name, content, options, cases, expected, tmp_path):
    made = Outcome(0, "tflite" if content[4:8] == b"TFL3" else "onnx", "", 0, options, EXACT)
    found = Runner(tmp_path, {}).judge(made, Subject(content, cases, expected, False))
    assert found.outcome == EXACT, found.detail


@pytest.mark.parametrize(
    ("wanted", "found", "is_equal"),
    [
        ([np.inf, 1], [np.inf, 1], True),
        ([np.inf, 1], [np.inf, 2], False),
        ([-np.inf, 1], [np.inf, 1], False),
        ([np.nan, 1], [np.nan, 1], True),
        ([1, 1], [np.inf, 1], False),
        ([1e4, 1], [1e4, 2], True),
        ([1e4, 1], [1e4, 3], False),
    ],
)
def test_equal_outputs(wanted, found, is_equal):
    assert equal(np.asarray(wanted, np.float32), np.asarray(found, np.float32), True) == is_equal
