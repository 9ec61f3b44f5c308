# SPDX-License-Identifier: Apache-2.0
"""Code whose coverage is not measured."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def untraced() -> Iterator[None]:
    """Suspend the measurement of the coverage, which takes three times as long as the code itself.

    It is for processor times, and for many inputs of code that other tests reach.
    """
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
