# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators as operations."""

from __future__ import annotations

import numpy as np

from opwest.compiler.graph.types import Node
from opwest.compiler.ir import signal as ir
from opwest.compiler.ir.operations import Copy
from opwest.compiler.lowering.builder import Builder, lowers
from opwest.compiler.semantics import signal, signal_streams


@lowers("SignalWindow")
def window(node: Node, build: Builder) -> None:
    """A product with a window."""
    build.lower(ir.ApplyWindow, node, node.inputs, int(node.options["shift"]))


@lowers("SignalFftAutoScale")
def auto_scale(node: Node, build: Builder) -> None:
    """The data, and the number of bits."""
    build.lower(ir.AutoScale, node, node.inputs)


@lowers("SignalRfft")
def rfft(node: Node, build: Builder) -> None:
    """The spectrum of each row."""
    build.lower(ir.RealFft, node, node.inputs, int(node.options["fft_length"]))


@lowers("SignalIrfft")
def irfft(node: Node, build: Builder) -> None:
    """The samples of each spectrum."""
    build.lower(ir.InverseRealFft, node, node.inputs, int(node.options["fft_length"]))


@lowers("SignalEnergy")
def energy(node: Node, build: Builder) -> None:
    """The energy of a range of frequencies."""
    build.lower(ir.Energy, node, node.inputs, *signal.energy_range(node))


@lowers("SignalFilterBank")
def filter_bank(node: Node, build: Builder) -> None:
    """Sums of energies. The places of bands without elements, which can be anywhere, become 0."""
    tables = [node.input(i).content for i in (3, 4, 5)]
    used = tables[2] > 0
    kept = [np.where(used, table, 0).astype(np.int16) for table in tables]
    own = [
        node.input(i) if np.array_equal(table, content) else build.constant(node.input(i).name, content)
        for i, table, content in zip((3, 4, 5), tables, kept, strict=True)
    ]
    build.lower(ir.FilterBank, node, (*node.inputs[:3], *own))


@lowers("SignalFilterBankSquareRoot")
def square_root(node: Node, build: Builder) -> None:
    """Square roots of sums."""
    build.lower(ir.SquareRoots, node, node.inputs)


@lowers("SignalFilterBankLog")
def log(node: Node, build: Builder) -> None:
    """Logarithms of channels."""
    bits = int(node.options["input_correction_bits"])
    build.lower(ir.Logarithms, node, node.inputs, int(node.options["output_scale"]) % (1 << 32), bits)


@lowers("SignalFilterBankSpectralSubtraction")
def spectral_subtraction(node: Node, build: Builder) -> None:
    """Channels without their noise, whose estimate is a state."""
    build.lower(ir.SubtractNoise, node, node.inputs, signal.noise_numbers(node))


@lowers("SignalPCAN")
def pcan(node: Node, build: Builder) -> None:
    """Automatic gain control."""
    build.lower(ir.Pcan, node, node.inputs, int(node.options["snr_shift"]))


@lowers("SignalFramer")
def framer(node: Node, build: Builder) -> None:
    """Frames of a stream."""
    build.lower(ir.Frames, node, node.inputs, signal_streams.framer_numbers(node))


@lowers("SignalOverlapAdd")
def overlap_add(node: Node, build: Builder) -> None:
    """Samples of frames that overlap."""
    build.lower(ir.OverlapAdd, node, node.inputs, signal_streams.overlap_numbers(node)[3])


@lowers("SignalStacker")
def stacker(node: Node, build: Builder) -> None:
    """The newest frames. A stack of one frame is the frame."""
    numbers = signal_streams.stacker_numbers(node)
    if numbers.frames > 1:
        build.lower(ir.Stack, node, node.inputs, numbers)
        return
    frame, is_valid = node.outputs
    build.view(frame, build.value(node.input(0)))
    valid = build.constant(is_valid.name, np.ones((), bool))
    build.add(Copy(node.label, (valid,), (build.value(is_valid),)))


@lowers("SignalDelay")
def delay(node: Node, build: Builder) -> None:
    """Samples of earlier calls."""
    if len(node.inputs) == 1:
        build.view(node.output, build.value(node.input(0)))
        return
    build.lower(ir.Delay, node, node.inputs)
