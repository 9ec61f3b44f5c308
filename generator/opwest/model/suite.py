# SPDX-License-Identifier: Apache-2.0
"""What the tests that come with a model compare."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Vectors:
    """Golden vectors of one file: of every input and output the bytes of `count` cases, one after the other."""

    file: str
    count: int
    content: tuple[tuple[str, bytes], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may be from a vector: `absolute` + `relative` * |what is wanted|."""

    output: str
    absolute: float
    relative: float


@dataclass(frozen=True, slots=True)
class Suite:
    """What the tests that come with the model compare; outputs without a tolerance bit for bit."""

    vectors: tuple[Vectors, ...]
    tolerances: tuple[Tolerance, ...]
    repeatable: bool
    """The same inputs give the same outputs: nothing keeps state."""
