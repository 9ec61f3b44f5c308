# SPDX-License-Identifier: Apache-2.0
"""The verifier of programs: signal operators whose numbers contradict their operands."""

import dataclasses

import numpy as np
import pytest
from models.campaigns import graph_of
from models.executor import program_of
from models.made import Model
from models.signal_chains import CHANNELS, add, filters
from opwest.compiler.ir.program import Value
from opwest.compiler.ir.verify import Broken, verify


def made(kind, data, *results, **options):
    """Return the program of one operator."""
    model = Model()
    found = add(model, kind, [model.input(*data)], *results, **options)
    return program_of(graph_of(model.output(*(found if len(results) > 1 else [found])).build()))


def framer():
    results = ("int16", (2, 6)), ("bool", ())
    return made("SignalFramer", ("int16", (8,)), *results, frame_size=6, frame_step=4, prefill=False)


def overlap():
    return made("SignalOverlapAdd", ("int16", (3, 6)), ("int16", (12,)), T=7, frame_step=4)


def stacker():
    options = {"num_channels": 3, "stacker_left_context": 1, "stacker_right_context": 1, "stacker_step": 2}
    return made("SignalStacker", ("int16", (3,)), ("int16", (9,)), ("bool", ()), **options)


def spectrum():
    return made("SignalRfft", ("int16", (2, 10)), ("int16", (2, 18)), T=7, fft_length=16)


def inverse():
    return made("SignalIrfft", ("int16", (2, 18)), ("int16", (2, 16)), T=7, fft_length=16)


def bank():
    model = Model()
    inputs = [model.input("uint32", (257,)), *filters(model)]
    sums = add(model, "SignalFilterBank", inputs, ("uint64", (CHANNELS,)), num_channels=CHANNELS)
    return program_of(graph_of(model.output(sums).build()))


def numbers(**changes):
    return lambda layer: {"numbers": dataclasses.replace(layer.numbers, **changes)}


def without_states(layer):
    return {"inputs": layer.inputs[:1]}


def moved(layer):
    """The bands of a filter bank, 30 elements later."""
    data, weights, unweights, starts, *rest = layer.inputs
    content = (starts.content + 30).astype(np.int16)
    shifted = Value("starts", "constant", "int16", starts.shape, None, content)
    return {"inputs": (data, weights, unweights, shifted, *rest)}


CASES = [
    (framer, numbers(step=3), "8 samples for 2 frames"),
    (framer, numbers(size=7), "the result has another shape"),
    (framer, without_states, r"states of \[\] elements, not \[4, 1\]"),
    (framer, numbers(missing=0), r"states of \[4, 1\] elements, not \[4, 0\]"),
    (overlap, lambda _: {"step": 7}, "a step of 7 in frames of 6"),
    (overlap, lambda _: {"step": 3}, "the result has another shape"),
    (overlap, without_states, r"states of \[\] elements, not \[2\]"),
    (stacker, numbers(channels=4), "3 of 4 channels"),
    (stacker, numbers(frames=4), "the result has another shape"),
    (stacker, without_states, r"states of \[\] elements, not \[6, 1\]"),
    (spectrum, lambda _: {"length": 8}, r"an FFT of 8 from \[2, 10\] to \[2, 18\]"),
    (inverse, lambda _: {"length": 14}, r"an FFT of 14 from \[2, 18\] to \[2, 16\]"),
    (bank, moved, "a band outside of the data or of the weights"),
    (bank, lambda layer: {"inputs": (*layer.inputs[:5], layer.inputs[0])}, "tables of other sizes"),
]
"""A program, a change of its operation, the message."""


@pytest.mark.parametrize(("make", "change", "message"), CASES)
def test_contradictions(make, change, message):
    program = make()
    verify(program)
    [layer] = program.operations
    program.operations = [dataclasses.replace(layer, **change(layer))]
    with pytest.raises(Broken, match=message) as caught:
        verify(program)
    assert caught.value.operation is program.operations[0]
