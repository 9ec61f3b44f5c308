# SPDX-License-Identifier: Apache-2.0
"""Check how the processor time of a function grows with its input, whatever the speed of the machine."""

import gc
import time
from collections.abc import Callable

from tracing import untraced


def check_linear(small: Callable[[], object], large: Callable[[], object], factor: int = 8) -> None:
    """Check that `large` takes less than factor^1.5 times the processor time of `small`, each at its best of three.

    The input of `large` is `factor` times as large: linear growth takes `factor` times as long, quadratic growth
    factor² times. The coverage is not measured. The garbage collector is off, because its time depends on the objects
    of other tests.
    """
    gc.collect()
    gc.disable()
    try:
        with untraced():
            one, many = (min(_seconds(use) for _ in range(3)) for use in (small, large))
    finally:
        gc.enable()
    assert many < factor**1.5 * one, f"{one:.3f} s, and {many:.3f} s for {factor} times as much"


def _seconds(use: Callable[[], object]) -> float:
    begin = time.process_time()
    use()
    return time.process_time() - begin
