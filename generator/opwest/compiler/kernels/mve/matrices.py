# SPDX-License-Identifier: Apache-2.0
"""Products of two matrices that are data: the columns of the second one are copied to a stream for the tiles.

Its elements follow each other in the stream, with the sums of columns, which the zero point of the first one needs.
Constants are such a stream in flash.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.emission.matrix import batches
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.ir.program import Value
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve import streams
from opwest.compiler.kernels.mve.products import COLUMNS, WORDS, Product, product_of

STREAM = 4096
"""The bytes of scratch memory for columns, unless four need more."""
STEP = 0xFFFF // 7
"""The most bytes between elements that are gathered."""


@dataclass(frozen=True, eq=False)
class Matrices:
    """The operands of a product, as rows [m,k] and columns [n,k]."""

    operation: MatrixProduct

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The numbers m, k, n."""
        value, swaps = self.operation.inputs[0], self.operation.swaps
        rows, depth = value.shape[-2:][:: -1 if swaps[0] else 1]
        return rows, depth, self.operation.results[0].shape[-1]

    @property
    def outer(self) -> tuple[int, ...]:
        """The dimensions of the batches of the result; none for rows of one matrix."""
        one, other = self.operation.inputs[:2]
        shape = self.operation.results[0].shape
        return shape[:-2] if len(shape) == max(len(one.shape), len(other.shape)) else ()

    @property
    def bias(self) -> Value | None:
        """The bias of the columns."""
        return self.operation.inputs[2] if len(self.operation.inputs) > 2 else None

    @property
    def is_constant(self) -> bool:
        """Whether the second operand and the bias are constants."""
        return all(is_known(value) for value in self.operation.inputs[1:])

    @property
    def columns(self) -> Any:
        """The columns [batches,n,k] of a constant."""
        content = self.operation.inputs[1].content
        matrices = content if self.operation.swaps[1] else np.swapaxes(content, -1, -2)
        return matrices.reshape(-1, *matrices.shape[-2:])

    def step(self, operand: int) -> tuple[int, int]:
        """Return the elements between the lines of an operand, and between the elements of a line."""
        rows, depth, columns = self.sizes
        count, is_swapped = (rows, columns)[operand], self.operation.swaps[operand]
        return (1, count) if is_swapped == (operand == 0) else (depth, 1)


def is_known(value: Value) -> bool:
    """Whether the content of a value is known at import; that of a state is only its first one."""
    return value.role == "constant" and value.content is not None


@emits(MatrixProduct, "mve-product")
def render(operation: MatrixProduct) -> Call | None:
    """Return the call; None for other dtypes, several multipliers, a bias of 64 bits, and elements far apart."""
    given, value, other = Matrices(operation), *operation.inputs[:2]
    if value.dtype != "int8" or other.dtype != "int8" or operation.results[0].dtype not in ("int8", "int32"):
        return None
    if given.bias is not None and given.bias.dtype != "int32":
        return None
    depth = given.sizes[1]
    is_spread = tuple(given.step(operand)[1] > 1 for operand in range(2))
    if any(given.step(operand)[1] > STEP for operand in range(2)):
        return None
    pitch = -(-depth // 16) * 16 if is_spread[0] else depth
    product = product_of(given.sizes, operation.zeros, operation.finish, given.bias is not None, _bound(given), pitch)
    return None if product is None else _call(given, product, is_spread)


def _bound(given: Matrices) -> int | None:
    """Return the greatest magnitude of sums; None: any of 32 bits."""
    bias, most = given.bias, given.sizes[1]
    for zero in given.operation.zeros:
        most *= max(127 - zero, 128 + zero)
    if bias is not None and not is_known(bias):
        return None
    return most + (0 if bias is None else int(np.abs(bias.content.astype(np.int64)).max()))


def _call(given: Matrices, product: Product, is_spread: tuple[bool, ...]) -> Call:
    """Return the call of a product."""
    operation, (rows, depth, columns) = given.operation, given.sizes
    value, other = operation.inputs[:2]
    name, text = product.function()
    work = _Work(given, product, name, is_spread)
    lines, scratch = Lines(), []
    arguments: dict[str, Any] = {"a": value}
    copies = []
    if given.is_constant:
        arguments["stream"] = packed_columns(given, product)
        size = arguments["stream"].size // len(given.columns)
    else:
        arguments["b"] = other
        size = depth * columns
        copies.append(work.copy[1])
        scratch.append(Parameter("stream", "int32", "scratch", elements=work.pairs * product.pair // 4))
        if given.bias is not None:
            arguments["bias"] = given.bias
    layouts = np.concatenate([work.layout, [0, rows, depth]]).astype(np.int32)
    arguments["numbers"] = np.concatenate([product.numbers, layouts])
    if is_spread[0]:
        copies.append(streams.rows_function()[1])
        scratch.append(Parameter("lines", "int32", "scratch", elements=rows * product.pitch // 4))
    shapes, sizes = [value.shape[:-2], other.shape[:-2]], (rows * depth, size)
    _, strides = joined(shapes, given.outer)
    # Columns that all batches share are copied once.
    is_shared = not given.is_constant and not any(strides[1]) and work.is_whole
    lines.add(f"{'int32_t' if product.end is None else 'int8_t'} *y = result;", "")
    if is_shared:
        work.pack_all(lines, "b")
    with batches(lines, shapes, given.outer, sizes) as (one, two):
        source = " + ".join(filter(None, ("a", one)))
        if is_spread[0]:
            lines.add("int8_t *held = (int8_t *)lines;", "")
            lines.add(f"{streams.rows_function()[0]}(held, {source}, numbers + {WORDS + len(streams.LAYOUT)}, {rows});")
            source = "held"
        if given.is_constant or is_shared:
            work.multiply_all(lines, source, " + ".join(filter(None, ("stream", two))))
        else:
            work.blocks(lines, source, " + ".join(filter(None, ("b", two))))
        lines.add(f"y += {rows * columns};")
    definitions = (NAKED, *copies, text)
    return call_for(operation, "matrix_product", lines, arguments, (), scratch, definitions=definitions)


@dataclass(frozen=True, eq=False)
class _Work:
    """The statements of a product."""

    given: Matrices
    product: Product
    name: str
    is_spread: tuple[bool, ...]

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The first column and the number of pairs of each part: an odd last column is in a pair of its own."""
        columns = self.product.columns
        parts = [(0, columns // COLUMNS)] if columns > 1 else []
        return [*parts, *([(max(0, columns - COLUMNS), 1)] if columns % COLUMNS else [])]

    @property
    def pairs(self) -> int:
        """The pairs of columns in scratch memory."""
        return min(sum(pairs for _, pairs in self.parts), max(2, STREAM // self.product.pair & ~1))

    @property
    def is_whole(self) -> bool:
        """Whether scratch memory has all columns."""
        return self.pairs == sum(pairs for _, pairs in self.parts)

    @property
    def copy(self) -> tuple[str, str]:
        """The name and the definition of the function that copies columns."""
        return streams.function_of(self.is_spread[1], self.product.has_bias, self.product.steps == 1)

    @property
    def layout(self) -> Any:
        """The numbers of the copies."""
        given, (column, step) = self.given, self.given.step(1)
        zero, other = given.operation.zeros
        # A single column is both columns of a pair.
        column = column if self.product.columns > 1 else 0
        return np.asarray([column, step, self.product.length, zero, self.product.length * zero * other], np.int32)

    def _pack(self, lines: Lines, source: str, place: tuple[int | str, int, int | str]) -> None:
        """Append the copy of pairs: the first column, the first pair of the stream, the number of pairs."""
        first, at, pairs = place
        words = self.product.pair // 4
        to = f"stream{plus(at * words)}"
        start = "" if first == 0 else f" + {first} * {self.given.step(1)[0]}"
        lines.add(f"{self.copy[0]}({to}, {source}{start}, numbers + {WORDS}, {pairs});")
        if self.given.bias is None:
            return
        with lines.block(f"for (int pair = 0; pair < {pairs}; pair++)"):
            lines.add(f"int32_t *ends = {to} + pair * {words} + {words - COLUMNS};", "")
            column = "2 * pair" if first == 0 else f"{first} + 2 * pair"
            for number in range(COLUMNS):
                lines.add(f"ends[{number}] += bias[{column}{plus(number if self.product.columns > 1 else 0)}];")

    def pack_all(self, lines: Lines, source: str) -> None:
        """Append the copy of all columns."""
        at = 0
        for first, pairs in self.parts:
            self._pack(lines, source, (first, at, pairs))
            at += pairs

    def multiply_all(self, lines: Lines, rows: str, stream: str) -> None:
        """Append the products of rows with all columns of a stream."""
        at = 0
        for first, pairs in self.parts:
            self._multiply(lines, rows, f"{stream} + {at * self.product.pair // 4}" if at else stream, (first, pairs))
            at += pairs

    def _multiply(self, lines: Lines, rows: str, stream: str, place: tuple[int | str, int | str]) -> None:
        first, pairs = place
        result = f"y + {first}" if first != 0 else "y"
        lines.add(f"{self.name}({rows}, {stream}, numbers, {result}, {pairs});")

    def blocks(self, lines: Lines, rows: str, source: str) -> None:
        """Append the copies of columns as far as scratch memory has room, and the products with them."""
        lines.add(f"const int8_t *q = {source};", "")
        if self.is_whole:
            self.pack_all(lines, "q")
            self.multiply_all(lines, rows, "stream")
            return
        for first, pairs in self.parts:
            if pairs <= self.pairs:
                self._pack(lines, "q", (first, 0, pairs))
                self._multiply(lines, rows, "stream", (first, pairs))
                continue
            step = COLUMNS * self.pairs
            with lines.block(f"for (int c = 0; c < {COLUMNS * pairs}; c += {step})"):
                end = COLUMNS * pairs - step
                lines.add(f"const int pairs = c <= {end} ? {self.pairs} : ({COLUMNS * pairs} - c) / {COLUMNS};", "")
                self._pack(lines, "q", ("c", 0, "pairs"))
                self._multiply(lines, rows, "stream", ("c", "pairs"))


def packed_columns(given: Matrices, product: Product) -> Any:
    """Return the stream of a constant, int32: [batch] pairs of columns, an odd last one with the one before it."""
    columns = given.columns
    matrices, count, length = columns.shape
    padded = np.pad(columns, ((0, 0), (0, 0), (0, 16 * product.steps - length)))
    places = [*range(count & ~1), *([max(0, count - 2), count - 1] if count % 2 else [])]
    chosen = padded[:, places].reshape(matrices, -1, COLUMNS, product.steps, 16).transpose(0, 1, 3, 2, 4)
    words = np.ascontiguousarray(chosen).reshape(matrices, len(places) // COLUMNS, -1).view(np.int32)
    if not product.has_bias:
        return words.reshape(-1)
    zero, other = given.operation.zeros
    sums = (length * zero * other - zero * columns.astype(np.int64).sum(axis=2)) + (
        0 if given.bias is None else given.bias.content.reshape(-1).astype(np.int64)
    )
    each = sums[:, places].reshape(matrices, -1, COLUMNS).astype(np.int32)
    return np.concatenate([words, each], axis=2).reshape(-1)
