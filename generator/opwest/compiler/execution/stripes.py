# SPDX-License-Identifier: Apache-2.0
"""Blocks of layers in stripes, call by call as in the emitted code: buffers of rows, which are dropped and moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.execution.run import Arrays, executes, results_of
from opwest.compiler.ir.stripes import Buffer, Source, Striped, pitch_of

PAINT = 85
"""The bytes of rows that nothing has written."""


@executes(Striped)
def striped(operation: Striped, arrays: Arrays) -> Any:
    """The rows of the last layer, a few in each turn."""
    return _Run(operation, arrays).result


class _Run:
    """The state of a block: rows of buffers, and the rows that each layer computes next."""

    def __init__(self, operation: Striped, arrays: Arrays) -> None:
        self._operation, self._arrays = operation, arrays
        self._next = [0] * len(operation.layers)
        self._first = [-buffer.top for buffer in operation.buffers]
        self._filled = [0] * len(operation.buffers)
        self._memory = [np.full((buffer.rows, buffer.pitch), PAINT, np.uint8) for buffer in operation.buffers]
        for buffer, memory in zip(operation.buffers, self._memory, strict=True):
            memory[: buffer.top] = np.uint8(buffer.fill & 255)
        [result] = operation.results
        self.result = np.zeros(result.shape, result.dtype)
        last = len(operation.layers) - 1
        self._written = 0
        """The bytes of the result that are written, which can be those of an input (`in_place`)."""
        while self._next[last] < operation.layers[last].height:
            self._require(last)
            self._written = (self._next[last] + operation.layers[last].count) * pitch_of(result)
            rows = self._call(last)
            self.result[:, self._next[last] : self._next[last] + rows.shape[1]] = rows
            self._next[last] += operation.layers[last].count

    def _require(self, number: int) -> None:
        """Write the rows that the next call of a layer reads."""
        layer = self._operation.layers[number]
        for source in layer.sources:
            if source.buffer is not None:
                end = self._next[number] + layer.count - 1
                self._fill(source.buffer, end * source.stride - source.before + source.reach)

    def _fill(self, number: int, need: int) -> None:
        """Write the rows of a buffer up to `need`."""
        buffer = self._operation.buffers[number]
        inside = min(need, buffer.height)
        if buffer.layer is None:
            if self._filled[number] < inside:
                self._drop(number)
                self._check_replacement(buffer.input, self._filled[number])
                rows = self._arrays[buffer.input][0, self._filled[number] : inside]
                self._write(number, rows)
        else:
            while self._next[buffer.layer] < inside:
                self._require(buffer.layer)
                self._drop(number)
                layer = self._operation.layers[buffer.layer]
                rows = self._call(buffer.layer)[0]
                self._write(number, rows)
                self._next[buffer.layer] += layer.count
        if self._filled[number] < need:
            self._drop(number)
            while self._filled[number] < need:
                self._memory[number][self._filled[number] - self._first[number]] = np.uint8(buffer.fill & 255)
                self._filled[number] += 1

    def _check_replacement(self, number: int, row: int) -> None:
        """Assert that the result has not replaced a row of an input that is read."""
        if number in self._operation.in_place:
            start = row * pitch_of(self._operation.inputs[number])
            assert start >= self._written, f"row {row} of input {number} is read after the result has replaced it"

    def _write(self, number: int, rows: Any) -> None:
        """Append rows [rows,w,c] to a buffer."""
        flat = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
        start = self._filled[number] - self._first[number]
        self._memory[number][start : start + len(flat)] = flat
        self._filled[number] += len(flat)

    def _drop(self, number: int) -> None:
        """Drop the rows before the first one that a layer still reads; the others move to the start."""
        lows = [
            self._next[place] * source.stride - source.before
            for place, layer in enumerate(self._operation.layers)
            for source in layer.sources
            if source.buffer == number
        ]
        low = min([*lows, self._filled[number]])
        if low > self._first[number]:
            kept = self._memory[number][low - self._first[number] : self._filled[number] - self._first[number]].copy()
            self._memory[number][: len(kept)] = kept
            self._first[number] = low

    def _call(self, number: int) -> Any:
        """Return the next rows of a layer: [1,count,w,c]."""
        layer = self._operation.layers[number]
        pending = iter(layer.sources)
        inputs = [
            value.content if value.role == "constant" else self._taken(number, next(pending), value)
            for value in layer.operation.inputs
        ]
        [rows] = results_of(layer.operation, inputs)
        return rows

    def _taken(self, number: int, source: Source, value: Any) -> Any:
        """Return the rows that a call reads from an input or a buffer."""
        first = self._next[number] * source.stride
        count = value.shape[1]
        if source.buffer is None:
            self._check_replacement(source.input, first)
            return self._arrays[source.input][:, first : first + count]
        buffer: Buffer = self._operation.buffers[source.buffer]
        start = first - source.before - self._first[source.buffer]
        assert start >= 0, f"row {first} of buffer {source.buffer} was dropped"
        rows = self._memory[source.buffer][start : start + count]
        assert rows.shape == (count, buffer.pitch), f"row {first} of buffer {source.buffer} is outside of its memory"
        return np.ascontiguousarray(rows).reshape(-1).view(value.dtype).reshape(value.shape)
