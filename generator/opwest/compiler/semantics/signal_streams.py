# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators that keep samples from one call to the next: frames, overlaps, stacks, delays.

tflite-micro has a ring buffer for each; here a state has its samples, the newest last, so that the samples of one call
follow those of the state in one sequence. Until a buffer is full, a result is not valid: tflite-micro then leaves the
memory of the result as it is, and here it is 0.
Sources in tflite-micro: signal/src/overlap_add.cc; framer.cc, stacker.cc and delay.cc in signal/micro/kernels/.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Shape, Unsupported
from opwest.compiler.semantics.signal import agreed, check_type, number_of, rows_of, vector

MAX_STATE = 1 << 24
"""The most elements of a state."""
_COUNT = ("seen", "int32", ())
"""The state that counts what a buffer contains, until it is full."""
States = Sequence[tuple[str, str, Shape]]
"""The name, the dtype and the shape of each state."""


@dataclass(frozen=True)
class FramerNumbers:
    """Frames of one row of samples: frame f is `size` elements from `f * step` on of the state and the samples."""

    rows: int
    frames: int
    size: int
    step: int
    kept: int
    """The samples of the state."""
    missing: int
    """The frames that are not valid after open."""


def framer_numbers(node: Node) -> FramerNumbers:
    """Return the numbers of frames. Raises Unsupported."""
    data = node.input(0)
    if not data.shape:
        raise Unsupported("data without dimensions", "rows of samples")
    rows, length = rows_of(data)
    step = number_of(node, "frame_step", 1, MAX_STATE)
    size = number_of(node, "frame_size", 1, MAX_STATE)
    if not length or length % step:
        raise Unsupported(f"rows of {counted(length, 'sample')} for a frame step of {step}", "a multiple of the step")
    if node.options["prefill"]:
        if size < step:
            raise Unsupported(f"prefilled frames of {size} for a step of {step}", "a frame size of the step or more")
        return FramerNumbers(rows, length // step, size, step, size - step, 0)
    kept = -(-size // step) * step - step
    return FramerNumbers(rows, length // step, size, step, kept, kept // step)


def _framer(node: Node) -> Sequence[Result]:
    numbers, outer = framer_numbers(node), node.input(0).shape[:-1]
    return agreed(node, ("int16", (*outer, numbers.frames, numbers.size)), ("bool", ()))


def _framer_states(node: Node) -> States:
    numbers = framer_numbers(node)
    samples = [("samples", "int16", (numbers.rows, numbers.kept))]
    return _of_sizes([*samples, *([_COUNT] if numbers.missing else [])])


def _of_sizes(states: States) -> States:
    """Return the states that have elements. Raises Unsupported if one has too many."""
    for name, _, shape in states:
        if prod(shape) > MAX_STATE:
            raise Unsupported(f"a state '{name}' of {counted(prod(shape), 'element')}", f"at most {MAX_STATE}")
    return [state for state in states if prod(state[2])]


def overlap_numbers(node: Node) -> tuple[int, int, int, int]:
    """Return the rows, the frames of each, their size and their step. Raises Unsupported."""
    shape = node.input(0).shape
    if len(shape) < 2 or not prod(shape):
        raise Unsupported(f"data of shape {list(shape)}", "2 dimensions or more: frames and their samples")
    return prod(shape[:-2]), shape[-2], shape[-1], number_of(node, "frame_step", 1, shape[-1])


def _overlap_add(node: Node) -> Sequence[Result]:
    data = node.input(0)
    check_type(node)
    _, frames, _, step = overlap_numbers(node)
    return agreed(node, (data.dtype, (*data.shape[:-2], frames * step)))


def _overlap_states(node: Node) -> States:
    rows, _, size, step = overlap_numbers(node)
    return _of_sizes([("sums", node.input(0).dtype, (rows, size - step))])


@dataclass(frozen=True)
class StackerNumbers:
    """A result is the newest `left + 1 + right` frames, once for each `step` frames."""

    channels: int
    left: int
    """The copies of the first frame before it."""
    frames: int
    """Of a result."""
    step: int


def stacker_numbers(node: Node) -> StackerNumbers:
    """Return the numbers of a stack. Raises Unsupported."""
    channels = vector(node.input(0))
    left, right = (number_of(node, f"stacker_{side}_context", 0, MAX_STATE) for side in ("left", "right"))
    if number_of(node, "num_channels", 0, MAX_STATE) != channels:
        raise Unsupported(f"option 'num_channels' is {node.options['num_channels']}", f"{channels}, those of the data")
    return StackerNumbers(channels, left, left + 1 + right, number_of(node, "stacker_step", 1, left + 1 + right))


def _stacker(node: Node) -> Sequence[Result]:
    numbers = stacker_numbers(node)
    return agreed(node, ("int16", (numbers.channels * numbers.frames,)), ("bool", ()))


def _stacker_states(node: Node) -> States:
    numbers = stacker_numbers(node)
    if numbers.frames == 1:
        return []
    return _of_sizes([("frames", "int16", (numbers.frames - 1, numbers.channels)), _COUNT])


def _delay(node: Node) -> Sequence[Result]:
    data = node.input(0)
    number_of(node, "delay_length", 0, MAX_STATE)
    if not data.shape:
        raise Unsupported("data without dimensions", "rows of samples")
    return agreed(node, ("int16", data.shape))


def _delay_states(node: Node) -> States:
    return _of_sizes([("samples", "int16", (rows_of(node.input(0))[0], int(node.options["delay_length"])))])


specify(
    Operator(
        "SignalFramer",
        _framer,
        ("int16",),
        {"frame_size": 0, "frame_step": 0, "prefill": False},
        states=_framer_states,
    ),
    Operator("SignalOverlapAdd", _overlap_add, ("int16|float32",), {"T": "", "frame_step": 0}, states=_overlap_states),
    Operator(
        "SignalStacker",
        _stacker,
        ("int16",),
        {"num_channels": 0, "stacker_left_context": 0, "stacker_right_context": 0, "stacker_step": 0},
        states=_stacker_states,
    ),
    Operator("SignalDelay", _delay, ("int16",), {"delay_length": 0}, states=_delay_states),
)
