# SPDX-License-Identifier: Apache-2.0
"""Files of signal operators that tflite-micro does not run, or whose meaning is not certain: messages, no guesses."""

import dataclasses
import re

import numpy as np
import pytest
from in_process import fail, succeed
from models.campaigns import graph_of, refusal
from models.executor import Library, checked, interpreted, program_of
from models.made import Model, flex
from models.signal_chains import add, plain
from models.signal_models import FAMILIES, Drawn
from opwest.frontends.tflite.read import read_tflite

RFFT = {"T": 7, "fft_length": 16}
FRAMER = {"frame_size": 6, "frame_step": 4, "prefill": True}
STACKER = {"num_channels": 4, "stacker_left_context": 1, "stacker_right_context": 1, "stacker_step": 1}
NOISE = {
    "alternate_one_minus_smoothing": 1,
    "alternate_smoothing": 1,
    "clamping": False,
    "min_signal_remaining": 1,
    "num_channels": 4,
    "one_minus_smoothing": 1,
    "smoothing": 1,
    "smoothing_bits": 10,
    "spectral_subtraction_bits": 14,
}


def one(kind, inputs, *results, **options):
    """Return a file of one operator; inputs are (dtype, shape) or arrays."""
    model = Model()
    given = [model.input(*item) if isinstance(item, tuple) else model.constant(item) for item in inputs]
    outputs = [model._tensor(dtype, tuple(shape)) for dtype, shape in results]
    model.operator(kind, given, *outputs, custom=flex(**options))
    return model.output(*outputs)


def words(count, *values):
    return np.resize(np.asarray(values, np.int16), count)


def bank(widths=(2, 2, 2), starts=(0, 2, 4), firsts=(0, 2, 4), channels=2, weights=6):
    tables = [np.asarray(table, np.int16) for table in (starts, firsts, widths)]
    inputs = [("uint32", (8,)), words(weights, 1), words(weights, 2), *tables]
    return one("SignalFilterBank", inputs, ("uint64", (channels,)), num_channels=channels)


def fft(length, given, dtype="int16", kind=7, result=None):
    options = {"T": kind, "fft_length": length}
    return one("SignalRfft", [(dtype, (given,))], (dtype, (length + 2 if result is None else result,)), **options)


CASES = {
    # lengths of FFTs
    "odd length": (fft(15, 8), "an FFT of length 15", "an even product of 2, 3 and 5 from 4 to 65536"),
    "factor 7": (fft(14, 8), "an FFT of length 14", "such as 512 or 480"),
    "length 2": (fft(2, 2), "an FFT of length 2", "from 4 to"),
    "negative length": (fft(-4, 2, result=4), "an FFT of length -4", "from 4 to"),
    "huge length": (fft(1 << 20, 8), "an FFT of length 1048576", "to 65536"),
    "rows too long": (fft(16, 20), r"rows of data \[20\] for an FFT of 16", "rows of at most 16"),
    "another result": (fft(16, 16, result=17), r"has the shape \[17\]", r"\[18\]"),
    "type of the option": (fft(16, 16, kind=2), "option 'T' is int32, with data of int16", "one dtype"),
    "unknown type": (fft(16, 16, kind=99), "option 'T' is type 99", "one dtype"),
    "dtype": (fft(16, 16, "int8", 9), "unsupported dtypes int8", "int16/int32/float32"),
    "inverse": (
        one("SignalIrfft", [("int16", (17,))], ("int16", (16,)), **RFFT),
        r"rows of data \[17\] for an FFT of 16",
        "rows of 18",
    ),
    # custom options
    "no options": (one("SignalRfft", [("int16", (16,))], ("int16", (18,))), "custom options none", "'T', 'fft_length'"),
    "other options": (
        one("SignalDelay", [("int16", (4,))], ("int16", (4,)), delay_length=3, gain=2),
        "custom options 'delay_length', 'gain'",
        "a FlexBuffers map with the keys 'delay_length'",
    ),
    "real option": (
        one("SignalDelay", [("int16", (4,))], ("int16", (4,)), delay_length=3.5),
        "custom option 'delay_length' is 3.5",
        "a whole number",
    ),
    # limits of options
    "shift": (
        one("SignalWindow", [("int16", (4,)), words(4, 1)], ("int16", (4,)), shift=32),
        "option 'shift' is 32",
        "0 to 31",
    ),
    "rows of a window": (
        one("SignalWindow", [("int16", (6,)), words(4, 1)], ("int16", (6,)), shift=2),
        r"a window of 4 elements for data \[6\]",
        "rows of the window",
    ),
    "energy": (
        one("SignalEnergy", [("int16", (8,))], ("uint32", (4,)), start_index=3, end_index=2),
        "option 'start_index' is 3",
        "0 to 2",
    ),
    "energy behind the data": (
        one("SignalEnergy", [("int16", (8,))], ("uint32", (4,)), start_index=0, end_index=5),
        "option 'end_index' is 5",
        "0 to 4",
    ),
    "bits of a logarithm": (
        one("SignalFilterBankLog", [("uint32", (4,))], ("int16", (4,)), input_correction_bits=-1, output_scale=1),
        "option 'input_correction_bits' is -1",
        "0 to 31",
    ),
    "channels of noise": (
        one("SignalFilterBankSpectralSubtraction", [("uint32", (5,))], *[("uint32", (5,))] * 2, **NOISE),
        "option 'num_channels' is 4",
        "5, those of the data",
    ),
    "gains": (
        one("SignalPCAN", [*[("uint32", (4,))] * 2, words(124, 1)], ("uint32", (4,)), snr_shift=6),
        "124 gains",
        "125 or more",
    ),
    "dimensions": (
        one("SignalFftAutoScale", [("int16", (1, 4))], ("int16", (1, 4)), ("int32", ())),
        r"of shape \[1, 4\]",
        "1 dimension",
    ),
    # filter banks
    "band behind the data": (bank(starts=(0, 2, 7)), "entry 2 of the filters: 2 elements from 7", r"data \[8\]"),
    "band before the data": (bank(starts=(-1, 2, 4)), "entry 0 of the filters: 2 elements from -1", r"data \[8\]"),
    "weights behind the table": (bank(firsts=(0, 2, 5)), "weights from 5", r"of weights \[6\], \[6\]"),
    "tables": (bank(channels=4), "4 channels with tables of 3, 3, 3 entries", "5 entries"),
    # streams
    "steps": (
        one("SignalFramer", [("int16", (6,))], ("int16", (1, 6)), ("bool", ()), **FRAMER),
        "rows of 6 samples for a frame step of 4",
        "a multiple of the step",
    ),
    "no step": (
        one("SignalFramer", [("int16", (6,))], ("int16", (1, 6)), ("bool", ()), **{**FRAMER, "frame_step": 0}),
        "option 'frame_step' is 0",
        "1 to",
    ),
    "prefill": (
        one("SignalFramer", [("int16", (4,))], ("int16", (1, 3)), ("bool", ()), **{**FRAMER, "frame_size": 3}),
        "prefilled frames of 3 for a step of 4",
        "a frame size of the step or more",
    ),
    "overlap": (
        one("SignalOverlapAdd", [("int16", (1, 4))], ("int16", (5,)), T=7, frame_step=5),
        "option 'frame_step' is 5",
        "1 to 4",
    ),
    "stack": (
        one("SignalStacker", [("int16", (4,))], ("int16", (12,)), ("bool", ()), **{**STACKER, "stacker_step": 4}),
        "option 'stacker_step' is 4",
        "1 to 3",
    ),
    "stack of other channels": (
        one("SignalStacker", [("int16", (3,))], ("int16", (9,)), ("bool", ()), **STACKER),
        "option 'num_channels' is 4",
        "3, those of the data",
    ),
    "delay": (
        one("SignalDelay", [("int16", (2, 4))], ("int16", (2, 4)), delay_length=1 << 24),
        "a state 'samples' of 33554432 elements",
        "at most 16777216",
    ),
}
"""The file, and what the message contains: the reason and what was expected."""


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    model, reason, expected = CASES[name]
    found = refusal(model)
    kind = model.graph.operators[0][0]
    assert re.search(rf"operator 0 \({kind}\), result 'tensor_\d+': .*{reason}", found), found
    assert re.search(rf"expected: .*{expected}", found), found
    assert f"--operator {kind}=FILE.yaml" in found
    assert "Traceback" not in found


def test_computed_weights_of_a_filter_bank():
    model = bank()
    weights = model.input("int16", (6,))
    kind, inputs, results, options = model.graph.operators[0]
    model.graph.operators[0] = (kind, [inputs[0], weights, *inputs[2:]], results, options)
    assert f"weights '{weights.name}' are computed when the model runs" in refusal(model)


def test_bands_without_elements(tmp_path):
    """Their places can be anywhere, and no address is made of them."""
    graph = graph_of(bank(widths=(2, -3, 2), starts=(0, -99, 4), firsts=(0, 999, 4)).build())
    program = program_of(graph)
    assert [table.content.tolist() for table in program.operations[0].inputs[3:]] == [[0, 0, 4], [0, 0, 4], [2, 0, 2]]
    case = [np.arange(1, 9, dtype=np.uint32)]
    # The weights are 1, the unweights 2: twice the first band and nothing, then the last band.
    expected = [2 * (1 + 2), 5 + 6]
    assert interpreted(graph, case)[0].tolist() == expected
    assert Library([program], tmp_path).run(0, case)[0].tolist() == expected


def test_all_faults_are_reported_at_once(tmp_path):
    model = Model()
    data = model.input("int16", (1, 8), name="sound")
    for length in (14, 22):
        result = add(model, "SignalRfft", [data], ("int16", (1, length + 2)), T=7, fft_length=length)
        model.output(result)
    model.save(tmp_path / "model.tflite")
    done = fail("import", tmp_path / "model.tflite", "-o", tmp_path / "out")
    assert done.stderr.count("an FFT of length") == 2
    assert "model.tflite: error: operator 0 (SignalRfft), result 'tensor_1': an FFT of length 14" in done.stderr
    assert not (tmp_path / "out").exists()


SNIPPET = """\
objects:
  - files: [scale.c]
operators:
  scale:
    returns: void
    args:
      - {name: x, dtype: int16}
      - {name: y, dtype: int16, shape: [1, 8], direction: out}
"""
SOURCE = """\
#include <stdint.h>

void scale(const int16_t *x, int16_t *y)
{
	for (int i = 0; i < 8; i++) {
		y[i] = x[i];
	}
}
"""


def test_operator_of_the_user_replaces_a_signal_operator(tmp_path):
    model = Model()
    data = model.input("int16", (1, 8), name="sound")
    delayed = add(model, "SignalDelay", [data], ("int16", (1, 8)), delay_length=3)
    model.output(plain(model, "ABS", [delayed], "int16", (1, 8)))
    model.save(tmp_path / "model.tflite")
    (tmp_path / "scale.yaml").write_text(SNIPPET)
    (tmp_path / "scale.c").write_text(SOURCE)
    words = ["import", tmp_path / "model.tflite", "--vectors", "0"]
    succeed(*words, "-o", tmp_path / "own", "--operator", f"SignalDelay={tmp_path / 'scale.yaml'}")
    succeed(*words, "-o", tmp_path / "built_in")
    own, built_in = ((tmp_path / name / "manifest.yaml").read_text() for name in ("own", "built_in"))
    assert "call: scale" in own and "state:" not in own
    assert "call: delay" in built_in and "samples: {dtype: int16, shape: [1, 3]}" in built_in


def test_states_belong_to_the_operator():
    """Every check of a graph finds the states of the first one, and a variable of the file is none of them."""
    for name in FAMILIES:
        make, *more = FAMILIES[name]
        graph = graph_of(make(Drawn(name, 1), *more).build())
        before = [list(node.inputs) for node in graph.nodes]
        again = dataclasses.replace(graph)
        assert [list(node.inputs) for node in checked(again).nodes] == before
    model = Model()
    result = model._tensor("int16", (1, 4))
    model.operator("SignalDelay", [model.variable("int16", (1, 4))], result, custom=flex(delay_length=2))
    [graph] = read_tflite(model.output(result).build())
    assert graph.nodes[0].inputs[0].is_state
    assert "unsupported dtypes" in refusal(model)


def looped(turns):
    """Return a file that delays its input in a loop: one operator, whose state lasts from turn to turn."""
    model = Model()
    for fill in (condition, body):
        model.subgraph()
        fill(model, turns)
    model.current = model.subgraphs[0]
    data = model.input("int16", (1, 8), name="sound")
    start = model.constant(np.zeros(1, np.int32))
    results = [model._tensor("int32", (1,)), model._tensor("int16", (1, 8))]
    model.operator("WHILE", [start, data], *results, cond_subgraph_index=1, body_subgraph_index=2)
    return model.output(results[1])


def condition(model, turns):
    turn, _ = model.input("int32", (1,)), model.input("int16", (1, 8))
    model.output(plain(model, "LESS", [turn, model.constant(np.asarray([turns], np.int32))], "bool", (1,)))


def body(model, _):
    turn, data = model.input("int32", (1,)), model.input("int16", (1, 8))
    following = plain(model, "ADD", [turn, model.constant(np.ones(1, np.int32))], "int32", (1,))
    model.output(following, add(model, "SignalDelay", [data], ("int16", (1, 8)), delay_length=3))


def test_turns_of_a_loop_share_the_state():
    """tflite-micro has one state for each operator of a file: the samples of a turn go to the next one."""
    graph, state = graph_of(looped(2).build()), {}
    assert len({node.inputs[1] for node in graph.nodes}) == 1
    kept = np.zeros(3, np.int16)
    for run in range(4):
        samples = np.arange(1, 9, dtype=np.int16) * (run + 1)
        [found] = interpreted(graph, [samples[None]], state)
        for _ in range(2):
            stream = np.concatenate([kept, samples])
            samples, kept = stream[:8], stream[8:]
        assert found[0].tolist() == samples.tolist()


def test_options_are_checked_in_loops():
    model = looped(2)
    kind, inputs, results, _ = model.subgraphs[2].operators[1]
    model.subgraphs[2].operators[1] = (kind, inputs, results, {"custom": flex(length=3)})
    assert "custom options 'length'" in refusal(model)
