# SPDX-License-Identifier: Apache-2.0
"""Lines of C with their indentation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager


class Lines:
    """The body of a function."""

    def __init__(self, depth: int = 1) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def add(self, *lines: str) -> None:
        """Append lines at the current depth; an empty one separates."""
        self._lines.extend("\t" * self._depth + line if line else "" for line in lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Append a block; its lines are added inside of the context. `else` continues the block before it."""
        if head == "else":
            self._lines.pop()
            head = "} else"
        self.add(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}")

    @contextmanager
    def loop(self, variable: str, count: int, step: int = 1) -> Iterator[None]:
        """Append a loop from 0."""
        increment = f"{variable}++" if step == 1 else f"{variable} += {step}"
        with self.block(f"for (int {variable} = 0; {variable} < {count}; {increment})"):
            yield

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)


def number(value: float, dtype: str) -> str:
    """Return a literal of C."""
    if dtype in ("float32", "float64"):
        if not math.isfinite(value):
            return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return float(value).hex() + ("f" if dtype == "float32" else "")
    whole = int(value)
    if dtype == "uint64":
        return f"UINT64_C({whole})"
    if dtype == "int64":
        return "INT64_MIN" if whole == -(2**63) else f"INT64_C({whole})"
    return "INT32_MIN" if whole == -(2**31) else str(whole)
