# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators."""

from __future__ import annotations

from opwest.compiler.execution.run import FUNCTIONS
from opwest.compiler.ir import signal as ir
from opwest.compiler.reference import signal
from opwest.compiler.reference.signal_fft import irfft, rfft

FUNCTIONS.update(
    {
        ir.ApplyWindow: lambda op, arrays: signal.windowed(op.shift, *arrays),
        ir.AutoScale: lambda op, arrays: signal.auto_scaled(*arrays),
        ir.RealFft: lambda op, arrays: rfft(op.length, *arrays),
        ir.InverseRealFft: lambda op, arrays: irfft(op.length, *arrays),
        ir.Energy: lambda op, arrays: signal.energies(op.start, op.end, *arrays),
        ir.FilterBank: lambda op, arrays: signal.filtered(*arrays),
        ir.SquareRoots: lambda op, arrays: signal.rooted(arrays[0], int(arrays[1].reshape(-1)[0])),
        ir.Logarithms: lambda op, arrays: signal.logarithms_of(op.scale, op.bits, *arrays),
        ir.SubtractNoise: lambda op, arrays: signal.without_noise(op.numbers, *arrays),
        ir.Pcan: lambda op, arrays: signal.gained(op.shift, *arrays),
        ir.Frames: lambda op, arrays: signal.framed(op.numbers, *arrays),
        ir.OverlapAdd: lambda op, arrays: signal.overlapped(op.step, *arrays),
        ir.Stack: lambda op, arrays: signal.stacked(op.numbers, *arrays),
        ir.Delay: lambda op, arrays: signal.delayed(*arrays),
    }
)
