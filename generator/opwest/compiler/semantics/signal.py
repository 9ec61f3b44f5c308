# SPDX-License-Identifier: Apache-2.0
"""The signal operators of tflite-micro, which are custom operators of a file: windows, spectra, filter banks.

Sources in tflite-micro: signal/src/, signal/micro/kernels/. Operators of streams are in `signal_streams.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Shape, Tensor, Unsupported
from opwest.compiler.semantics.signal_fft import check_length

PREFIX = "Signal"
"""The start of the names of tflite-micro's signal operators."""
GAINS = 125
"""The elements of the table of gains: 4 for each place of the highest bit, from 1 to 32, less 3."""
_INT32 = (-(1 << 31), (1 << 31) - 1)


def number_of(node: Node, name: str, low: int, high: int) -> int:
    """Return an option that is a number. Raises Unsupported if it is outside of its limits."""
    value = int(node.options[name])
    if not low <= value <= high:
        raise Unsupported(f"option '{name}' is {value}", f"{low} to {high}")
    return value


def vector(tensor: Tensor) -> int:
    """Return the number of elements of a tensor with one dimension. Raises Unsupported."""
    if len(tensor.shape) != 1:
        raise Unsupported(f"'{tensor.name}' of shape {list(tensor.shape)}", "1 dimension")
    return tensor.size


def agreed(node: Node, *results: Result) -> Sequence[Result]:
    """Return the results. Raises Unsupported if the shapes of the file are others: tflite-micro relies on them."""
    for tensor, (_, shape) in zip(node.outputs, results, strict=False):
        if tensor.shape != shape:
            raise Unsupported(f"result '{tensor.name}' has the shape {list(tensor.shape)}", f"{list(shape)}")
    return results


def check_type(node: Node) -> None:
    """Raise Unsupported if the option 'T' is another dtype than that of the data."""
    if node.options["T"] != node.input(0).dtype:
        raise Unsupported(f"option 'T' is {node.options['T']}, with data of {node.input(0).dtype}", "one dtype")


def _window(node: Node) -> Sequence[Result]:
    data, length = node.input(0), vector(node.input(1))
    number_of(node, "shift", 0, 31)
    if not length or data.size % length or not data.shape:
        raise Unsupported(f"a window of {counted(length, 'element')} for data {list(data.shape)}", "rows of the window")
    return agreed(node, ("int16", data.shape))


def _auto_scale(node: Node) -> Sequence[Result]:
    vector(node.input(0))
    return agreed(node, ("int16", node.input(0).shape), ("int32", ()))


def _rfft(node: Node) -> Sequence[Result]:
    data = node.input(0)
    check_type(node)
    length = int(node.options["fft_length"])
    check_length(length)
    if not data.shape or data.shape[-1] > length:
        raise Unsupported(f"rows of data {list(data.shape)} for an FFT of {length}", f"rows of at most {length}")
    return agreed(node, (data.dtype, (*data.shape[:-1], length + 2)))


def _irfft(node: Node) -> Sequence[Result]:
    data = node.input(0)
    check_type(node)
    length = int(node.options["fft_length"])
    check_length(length)
    if not data.shape or data.shape[-1] != length + 2:
        raise Unsupported(f"rows of data {list(data.shape)} for an FFT of {length}", f"rows of {length + 2}")
    return agreed(node, (data.dtype, (*data.shape[:-1], length)))


def energy_range(node: Node) -> tuple[int, int]:
    """Return the first element of the result that is computed, and the one behind the last. Raises Unsupported."""
    pairs = vector(node.input(0)) // 2
    end = number_of(node, "end_index", 0, pairs)
    return number_of(node, "start_index", 0, end), end


def _energy(node: Node) -> Sequence[Result]:
    energy_range(node)
    return agreed(node, ("uint32", (node.input(0).size // 2,)))


def _filter_bank(node: Node) -> Sequence[Result]:
    names = ("weights", "unweights", "frequency starts", "weight starts", "widths")
    for tensor, what in zip(node.inputs[1:], names, strict=True):
        if tensor is None or not tensor.is_constant:
            raise Unsupported(f"{what} '{'' if tensor is None else tensor.name}' are computed when the model runs")
    channels = number_of(node, "num_channels", 1, 1 << 15)
    size, weights, unweights, *counts = (vector(node.input(i)) for i in range(6))
    if any(count != channels + 1 for count in counts):
        shown = ", ".join(map(str, counts))
        raise Unsupported(f"{counted(channels, 'channel')} with tables of {shown} entries", f"{channels + 1} entries")
    tables = (node.input(i).content.tolist() for i in (3, 4, 5))
    for channel, (frequency, first, width) in enumerate(zip(*tables, strict=True)):
        if width <= 0:
            continue
        inside = frequency >= 0 and frequency + width <= size
        if not inside or first < 0 or first + width > min(weights, unweights):
            raise Unsupported(
                f"entry {channel} of the filters: {counted(width, 'element')} from {frequency}, weights from {first}",
                f"elements of data {[size]} and of weights {[weights]}, {[unweights]}",
            )
    return agreed(node, ("uint64", (channels,)))


def _square_root(node: Node) -> Sequence[Result]:
    vector(node.input(0))
    if node.input(1).size != 1:
        raise Unsupported(f"scale bits of shape {list(node.input(1).shape)}", "[]")
    return agreed(node, ("uint32", node.input(0).shape))


def _log(node: Node) -> Sequence[Result]:
    vector(node.input(0))
    number_of(node, "input_correction_bits", 0, 31)
    number_of(node, "output_scale", *_INT32)
    return agreed(node, ("int16", node.input(0).shape))


def logarithms() -> tuple[int, ...]:
    """Return log2(1 + x) - x in 1/65536 for x in steps of 1/128, with a last entry that is multiplied by 0."""
    values = [math.log2(1 + i / 128) - i / 128 for i in range(129)]
    return (*(round(65536 * value) for value in values), 0)


@dataclass(frozen=True)
class NoiseNumbers:
    """The numbers of a spectral subtraction; coefficients of even and odd channels as uint32."""

    smoothing: tuple[int, int]
    one_minus_smoothing: tuple[int, int]
    remaining: int
    smoothing_bits: int
    bits: int
    """The places of the coefficients behind the binary point."""
    is_clamped: bool


def noise_numbers(node: Node) -> NoiseNumbers:
    """Return the numbers of a spectral subtraction. Raises Unsupported."""

    def unsigned(name: str) -> int:
        return number_of(node, name, *_INT32) % (1 << 32)

    return NoiseNumbers(
        (unsigned("smoothing"), unsigned("alternate_smoothing")),
        (unsigned("one_minus_smoothing"), unsigned("alternate_one_minus_smoothing")),
        unsigned("min_signal_remaining"),
        number_of(node, "smoothing_bits", 0, 31),
        number_of(node, "spectral_subtraction_bits", 0, 63),
        bool(node.options["clamping"]),
    )


def _spectral_subtraction(node: Node) -> Sequence[Result]:
    channels = vector(node.input(0))
    if number_of(node, "num_channels", *_INT32) != channels:
        raise Unsupported(f"option 'num_channels' is {node.options['num_channels']}", f"{channels}, those of the data")
    noise_numbers(node)
    return agreed(node, *[("uint32", (channels,))] * 2)


def noise_state(node: Node) -> Sequence[tuple[str, str, Shape]]:
    """Return the name, the dtype and the shape of the estimate of the noise."""
    return [("noise", "uint32", node.input(0).shape)]


def _pcan(node: Node) -> Sequence[Result]:
    channels, noise, gains = (vector(node.input(i)) for i in range(3))
    number_of(node, "snr_shift", 0, 63)
    if noise != channels:
        raise Unsupported(f"{counted(noise, 'estimate')} of the noise for {counted(channels, 'channel')}")
    if gains < GAINS:
        raise Unsupported(f"{counted(gains, 'gain')}", f"{GAINS} or more")
    return agreed(node, ("uint32", (channels,)))


def rows_of(tensor: Tensor) -> tuple[int, int]:
    """Return the number of rows and their length: the last dimension."""
    return prod(tensor.shape[:-1]), tensor.shape[-1]


specify(
    Operator("SignalWindow", _window, ("int16 int16",), {"shift": 0}),
    Operator("SignalFftAutoScale", _auto_scale, ("int16",)),
    Operator("SignalRfft", _rfft, ("int16|int32|float32",), {"T": "", "fft_length": 0}),
    Operator("SignalIrfft", _irfft, ("int16|int32|float32",), {"T": "", "fft_length": 0}),
    Operator("SignalEnergy", _energy, ("int16",), {"end_index": 0, "start_index": 0}),
    Operator("SignalFilterBank", _filter_bank, ("uint32 int16 int16 int16 int16 int16",), {"num_channels": 0}),
    Operator("SignalFilterBankSquareRoot", _square_root, ("uint64 int32",)),
    Operator("SignalFilterBankLog", _log, ("uint32",), {"input_correction_bits": 0, "output_scale": 0}),
    Operator(
        "SignalFilterBankSpectralSubtraction",
        _spectral_subtraction,
        ("uint32",),
        {
            "alternate_one_minus_smoothing": 0,
            "alternate_smoothing": 0,
            "clamping": False,
            "min_signal_remaining": 0,
            "num_channels": 0,
            "one_minus_smoothing": 0,
            "smoothing": 0,
            "smoothing_bits": 0,
            "spectral_subtraction_bits": 0,
        },
        states=noise_state,
    ),
    Operator("SignalPCAN", _pcan, ("uint32 uint32 int16",), {"snr_shift": 0}),
)
