# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators."""

from __future__ import annotations

from opwest.compiler.execution.run import FUNCTIONS
from opwest.compiler.ir import signal as ir
from opwest.compiler.reference import signal
from opwest.compiler.reference.signal_fft import irfft, rfft

FUNCTIONS.update(
    {
        ir.ApplyWindow: lambda op, arrays: signal.windowed(*arrays, op.shift),
        ir.AutoScale: lambda op, arrays: signal.auto_scaled(*arrays),
        ir.RealFft: lambda op, arrays: rfft(*arrays, op.length),
        ir.InverseRealFft: lambda op, arrays: irfft(*arrays, op.length),
        ir.Energy: lambda op, arrays: signal.energies(*arrays, op.start, op.end),
        ir.FilterBank: lambda op, arrays: signal.filtered(*arrays),
        ir.SquareRoots: lambda op, arrays: signal.rooted(arrays[0], int(arrays[1].reshape(-1)[0])),
        ir.Logarithms: lambda op, arrays: signal.logarithms_of(*arrays, op.scale, op.bits),
        ir.SubtractNoise: lambda op, arrays: signal.without_noise(*arrays, op.numbers),
        ir.Pcan: lambda op, arrays: signal.gained(*arrays, op.shift),
        ir.Frames: lambda op, arrays: signal.framed(op.numbers, *arrays),
        ir.OverlapAdd: lambda op, arrays: signal.overlapped(op.step, *arrays),
        ir.Stack: lambda op, arrays: signal.stacked(*arrays, op.numbers),
        ir.Delay: lambda op, arrays: signal.delayed(*arrays),
    }
)
