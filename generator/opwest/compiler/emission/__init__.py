# SPDX-License-Identifier: Apache-2.0
"""Operations as portable C functions.

Enters: an operation. Leaves: a C function, its arguments, its constants. Never: instructions of a class of processors.
"""

from opwest.compiler.emission import (  # noqa: F401 - their functions register themselves
    convolution,
    depthwise,
    elementwise,
    hybrid,
    lstm,
    lstm_integer,
    matrix,
    movement,
    rows,
    signal,
    signal_fft,
    signal_streams,
)
