# SPDX-License-Identifier: Apache-2.0
"""The sources of an image that runs candidates: emitted operators, their data, the calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.output.emit import Emitted

GUARD = 32
"""The bytes between blocks, as in image.h."""
ALIGN = 16


@dataclass(frozen=True, eq=False)
class Candidate:
    """A program in one of its variants, with inputs and expected outputs."""

    program: Program
    emitted: Emitted
    inputs: Sequence[Any]
    outputs: Sequence[Any] | None
    """None: those of the candidate `like`, or of this one if `like` is None too."""
    like: int | None = None
    limits: Sequence[Any] | None = None
    """The greatest differences from float32 outputs, arrays of their shapes; None: the outputs are equal."""


class _Memory:
    """Addresses in the memory that all candidates share, one after the other."""

    def __init__(self) -> None:
        self.size = 0

    def block(self, size: int) -> int:
        """Return the offset of a new block with guards around it."""
        start = -(-(self.size + GUARD) // ALIGN) * ALIGN
        self.size = start + size + GUARD
        return start


class Image:
    """Sources by file name."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.files: dict[str, bytes] = {}
        self._content = bytearray()
        self._lines = ['#include "image.h"', ""]
        self._size = 0
        self._expected: dict[int, list[int]] = {}
        for number, candidate in enumerate(candidates):
            self.files[f"operators_{number}.c"] = candidate.emitted.source.encode()
            self._candidate(number, candidate)
        count = len(candidates)
        self._lines += [
            "const struct candidate candidates[] = {",
            *(
                f"\t{{run_{i}, inputs_{i}, outputs_{i}, {int(candidate.outputs is None and candidate.like is None)}, "
                f"{len(candidate.inputs)}, {len(candidate.program.outputs)}}},"
                for i, candidate in enumerate(candidates)
            ),
            "};",
            f"const uint32_t candidate_count = {count};",
            f"const uint32_t memory_size = {self._size};",
            f"uint8_t memory[{self._size}] __attribute__((aligned({ALIGN})));",
        ]
        self.files["candidates.c"] = "\n".join([*self._lines, ""]).encode()
        self.files["content.bin"] = bytes(self._content)
        self.files["content.S"] = (
            b'.section .content, "aw"\n.balign 16\n.global content, content_end\n'
            b'content:\n.incbin "content.bin"\ncontent_end:\n'
        )

    def _put(self, array: Any) -> int:
        """Return the offset of a constant."""
        data = np.ascontiguousarray(array).tobytes()
        self._content += bytes(-len(self._content) % ALIGN)
        offset = len(self._content)
        self._content += data
        return offset

    def _candidate(self, number: int, candidate: Candidate) -> None:
        memory = _Memory()
        places: dict[Value, str] = {}

        def place(value: Value) -> str:
            if value.root is not None:
                return f"{place(value.base)} + {value.offset * np.dtype(value.dtype).itemsize}"
            if value not in places:
                if value.role == "constant":
                    places[value] = f"content + {self._put(value.content)}"
                else:
                    places[value] = f"memory + {memory.block(value.size * np.dtype(value.dtype).itemsize)}"
            return places[value]

        calls = []
        declared: dict[str, int] = {}
        for step in candidate.emitted.steps:
            arguments = iter(step.arguments)
            passed = []
            for parameter in step.function.parameters:
                if parameter.direction == "scratch":
                    size = parameter.elements * np.dtype(parameter.dtype).itemsize
                    passed.append(f"memory + {memory.block(size)}")
                else:
                    passed.append(place(next(arguments)))
            declared[step.symbol] = len(passed)
            calls.append(f"\t{step.symbol}({', '.join(passed)});")
        self._lines += ["extern uint8_t content[];"] if number == 0 else []
        self._lines += [f"void {symbol}({', '.join(['const void *'] * count)});" for symbol, count in declared.items()]
        self._lines += [f"static void run_{number}(void)", "{", *calls, "}", ""]
        given = zip(candidate.program.inputs, candidate.inputs, strict=True)
        places_in = [(value, self._put(np.ascontiguousarray(array).astype(value.dtype))) for value, array in given]
        wanted = zip(candidate.program.outputs, self._outputs(number, candidate), strict=True)
        limits = [self._put(np.asarray(array, np.float32)) for array in candidate.limits or ()]
        for name, pairs, bounds in (("inputs", places_in, []), ("outputs", list(wanted), limits)):
            self._lines += [f"static const struct block {name}_{number}[] = {{", *_blocks(pairs, place, bounds), "};"]
        self._size = max(self._size, memory.size)

    def _outputs(self, number: int, candidate: Candidate) -> list[int]:
        """Return the offsets of the expected outputs."""
        if candidate.outputs is None and candidate.like is not None:
            return self._expected[candidate.like]
        values = candidate.program.outputs
        arrays = candidate.outputs if candidate.outputs is not None else [np.zeros(value.shape) for value in values]
        offsets = [
            self._put(np.ascontiguousarray(array).astype(value.dtype))
            for value, array in zip(values, arrays, strict=True)
        ]
        self._expected[number] = offsets
        return offsets


def _blocks(pairs: Sequence[tuple[Value, int]], place: Callable[[Value], str], limits: Sequence[int]) -> Iterator[str]:
    for number, (value, offset) in enumerate(pairs):
        size = value.size * np.dtype(value.dtype).itemsize
        bound = f"(const float *)(content + {limits[number]})" if limits else "0"
        yield f"\t{{{place(value)}, content + {offset}, {size}, {bound}}},"
