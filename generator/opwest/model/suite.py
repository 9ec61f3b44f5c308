# SPDX-License-Identifier: Apache-2.0
"""The emitted test suite of a model: golden vectors and tolerances."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Vectors:
    """Golden vectors of one file: for every input and output, the bytes of `count` consecutive cases."""

    file: str
    count: int
    content: tuple[tuple[str, bytes], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The accepted difference of an output from a vector: `absolute` + `relative` * |expected|."""

    output: str
    absolute: float
    relative: float


@dataclass(frozen=True, slots=True)
class Suite:
    """The comparisons of the emitted test suite; outputs without a tolerance must be equal bit for bit."""

    vectors: tuple[Vectors, ...]
    tolerances: tuple[Tolerance, ...]
    repeatable: bool
    """Whether equal inputs give equal outputs: no operator keeps state."""
