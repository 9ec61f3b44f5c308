# SPDX-License-Identifier: Apache-2.0
"""Blocks of layers in stripes: functions for some rows of each layer, and functions that fill the buffers between them.

`selection/block.py` runs the same calls with numbers of rows, for the sizes of the buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import plus, times
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, c_type, emits
from opwest.compiler.ir.program import Value
from opwest.compiler.ir.stripes import ALIGN, Buffer, Source, Striped
from opwest.compiler.kernels.assembly import FILL, NAKED
from opwest.compiler.kernels.mla.assembly import COPY
from opwest.compiler.kernels.rvv import assembly as rvv
from opwest.compiler.names import identifier
from opwest.compiler.output.emit import joint_calls
from opwest.compiler.output.placement import layers_of

NOINLINE = "static __attribute__((noinline)) "
"""Functions of layers are compiled alone: assembly in them needs many registers. Those that drop rows are compiled
alone because a block uses more stack with copies of them in the functions that fill buffers."""


@emits(Striped, "stripes")
def render(operation: Striped, loop_bytes: int | None = None) -> Call:
    """Return the call."""
    pairs = ((layer.operation, layer.variant) for layer in operation.layers)
    calls = [call for _, call in joint_calls(pairs, loop_bytes)]
    numbers = [identifier(layer, "layer") for layer in layers_of(operation.label)]
    name = f"stripes_{numbers[0]}_{numbers[-1]}"
    names: dict[Function, str] = {}
    for number, call in enumerate(calls):
        names.setdefault(call.function, f"{name}_{call.function.base}{number}")
    block = _Block(operation, name, calls, names)
    functions = list(names)
    text = [block.structure(), *block.functions(), block.body()]
    copying: dict[str, tuple[str, ...]] = {"mla_copy(": (NAKED, COPY), "fill_bytes(": (NAKED, FILL)}
    if operation.copies == "rvv":
        copying = {"copy_bytes(": (*rvv.BASE, rvv.COPY), "fill_bytes(": (*rvv.BASE, rvv.FILL)}
    copies = [copy for call, some in copying.items() for copy in some if call in "".join(text)]
    function = Function(
        "stripes",
        (*block.parameters(), Parameter("rows", "int8", "scratch", elements=operation.scratch, align=ALIGN)),
        text[-1],
        tuple(dict.fromkeys(["lesser", *(helper for function in functions for helper in function.helpers)])),
        tuple(dict.fromkeys(["string.h", *(header for function in functions for header in function.headers)])),
        definitions=(
            *dict.fromkeys([*(text for function in functions for text in function.definitions), *copies]),
            *(function.text(name, NOINLINE) for function, name in names.items()),
            *text[:-1],
        ),
    )
    return Call(function, block.arguments(), operation.label)


@dataclass(frozen=True, eq=False)
class _Block:
    """The text of a block."""

    operation: Striped
    name: str
    """The name of the state, and the start of the names of functions."""
    calls: Sequence[Call]
    names: dict[Function, str]

    @property
    def _inputs(self) -> list[str]:
        count = len(self.operation.inputs)
        return ["data"] if count == 1 else [f"data{number}" for number in range(count)]

    def _constants(self) -> Iterator[tuple[int, str, Any]]:
        """Yield the layer, the name and the value of each constant argument."""
        for number, call in enumerate(self.calls):
            given = [parameter for parameter in call.function.parameters if parameter.direction != "scratch"]
            for parameter, argument in zip(given, call.arguments, strict=True):
                if not isinstance(argument, Value) or argument.role == "constant":
                    yield number, f"{parameter.name}{number}", argument

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters but for the scratch memory."""
        operation, [result] = self.operation, self.operation.results
        replaced = tuple(self._inputs[number] for number in operation.in_place)
        constants = [Parameter(name, str(value.dtype)) for _, name, value in self._constants()]
        inputs = [Parameter(name, value.dtype) for name, value in zip(self._inputs, operation.inputs, strict=True)]
        return (*inputs, *constants, Parameter("result", result.dtype, "out", in_place=replaced))

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments of these parameters."""
        return (*self.operation.inputs, *(value for _, _, value in self._constants()), self.operation.results[0])

    def structure(self) -> str:
        """Return the type of the state: the parameters and the counts of rows."""
        lines = Lines()
        for parameter in self.parameters():
            lines.add(f"{'const ' if parameter.direction == 'in' else ''}{c_type(parameter.dtype)} *{parameter.name};")
        lines.add("int8_t *rows;")
        lines.add("/* Of each layer: the row that it computes next. */")
        lines.add(*(f"int next{number};" for number in range(len(self.operation.layers))))
        if self.operation.buffers:
            lines.add("/* Of each buffer: the number of its first row, and of the row after its last one. */")
        for number in range(len(self.operation.buffers)):
            lines.add(f"int first{number};", f"int filled{number};")
        return f"struct {self.name} {{\n{lines}}};\n"

    def functions(self) -> Iterator[str]:
        """Yield the functions that write rows to a buffer, each after those that it calls."""
        for number, buffer in enumerate(self.operation.buffers):
            lines = Lines()
            height = f"lesser(need, {buffer.height})" if self._has_bottom(number) else "need"
            if buffer.layer is None:
                self._load(lines, number, height)
            else:
                self._layer(lines, number, buffer.layer, height)
            if self._has_bottom(number):
                with lines.block(f"if (s->filled{number} < need)"):
                    lines.add(f"{self._drop_name(number)}(s);")
                    with lines.block(f"for (; s->filled{number} < need; s->filled{number}++)"):
                        lines.add(self._fill(self._row(number, f"s->filled{number}"), buffer, str(buffer.pitch)))
            yield self._drop(number)
            yield f"static void {self._fill_name(number)}(struct {self.name} *s, int need)\n{{\n{lines}}}\n"

    def body(self) -> str:
        """Return the lines between the braces."""
        operation, lines = self.operation, Lines()
        last = len(operation.layers) - 1
        named = [parameter.name for parameter in self.parameters()]
        lines.add(f"struct {self.name} state = {{")
        lines.add(*(f"\t.{field} = {field}," for field in (*named, "rows")))
        lines.add(
            *(f"\t.first{number} = {-buffer.top}," for number, buffer in enumerate(operation.buffers) if buffer.top)
        )
        lines.add("};", f"struct {self.name} *const s = &state;", "")
        for buffer in operation.buffers:
            if buffer.top:
                lines.add(self._fill(_plus("rows", buffer.offset), buffer, str(buffer.top * buffer.pitch)))
        final = operation.layers[last]
        step = f"s->next{last} += {final.count}" if final.count > 1 else f"s->next{last}++"
        with lines.block(f"for (; s->next{last} < {final.height}; {step})"):
            self._require(lines, last)
            lines.add(self._call(last))
        return str(lines)

    def _require(self, lines: Lines, layer: int) -> None:
        """Append the calls that write the rows that the next call of a layer reads."""
        stage = self.operation.layers[layer]
        for source in stage.sources:
            if source.buffer is not None:
                reach = (stage.count - 1) * source.stride - source.before + source.reach
                need = _plus(times(f"s->next{layer}", source.stride), reach)
                lines.add(f"{self._fill_name(source.buffer)}(s, {need});")

    def _layer(self, lines: Lines, buffer: int, layer: int, height: str) -> None:
        """Append the calls of a layer whose results are in a buffer."""
        stage = self.operation.layers[layer]
        with lines.block(f"while (s->next{layer} < {height})"):
            self._require(lines, layer)
            lines.add(f"{self._drop_name(buffer)}(s);", self._call(layer))
            lines.add(f"s->next{layer} += {stage.count};", f"s->filled{buffer} = s->next{layer};")

    def _load(self, lines: Lines, buffer: int, height: str) -> None:
        """Append the copies of rows of an input."""
        rows = self.operation.buffers[buffer]
        lines.add(f"const int end = {height};", "")
        with lines.block(f"if (s->filled{buffer} < end)"):
            is_bytes = self.operation.inputs[rows.input].dtype == "int8"
            source = f"{'' if is_bytes else '(const int8_t *)'}s->{self._inputs[rows.input]}"
            lines.add(
                f"{self._drop_name(buffer)}(s);",
                self._copy(
                    self._row(buffer, f"s->filled{buffer}"),
                    f"{source} + s->filled{buffer} * {rows.pitch}",
                    f"(end - s->filled{buffer}) * {rows.pitch}",
                    is_overlapping=False,
                ),
                f"s->filled{buffer} = end;",
            )

    def _drop(self, buffer: int) -> str:
        """Return the function that drops the rows before the first one that a layer still reads."""
        rows, lines = self.operation.buffers[buffer], Lines()
        readers = self._readers(buffer)
        lows = [_plus(times(f"s->next{layer}", source.stride), -source.before) for layer, source in readers]
        # Rows between windows are skipped.
        is_beyond = any(source.stride > source.reach for _, source in readers)
        lines.add(f"const int low = {_least([*lows, *([f's->filled{buffer}'] if is_beyond else [])])};", "")
        with lines.block(f"if (low > s->first{buffer})"):
            start = _plus("s->rows", rows.offset)
            size = f"(s->filled{buffer} - low) * {rows.pitch}"
            lines.add(self._copy(start, self._row(buffer, "low"), size, is_overlapping=True))
            lines.add(f"s->first{buffer} = low;")
        return f"{NOINLINE}void {self._drop_name(buffer)}(struct {self.name} *s)\n{{\n{lines}}}\n"

    def _call(self, layer: int) -> str:
        """Return the call of a layer."""
        stage, call = self.operation.layers[layer], self.calls[layer]
        values = [value for value in stage.operation.inputs if value.role != "constant"]
        places = {
            value: self._source(layer, source, value.dtype) for value, source in zip(values, stage.sources, strict=True)
        }
        [result] = stage.operation.results
        places[result] = self._target(layer, result)
        constants = iter([f"s->{name}" for number, name, _ in self._constants() if number == layer])
        arguments, given, work = [], iter(call.arguments), self.operation.work
        for parameter in call.function.parameters:
            if parameter.direction == "scratch":
                arguments.append(_cast(_plus("s->rows", work), parameter.dtype, ""))
                work += -(-parameter.nbytes // ALIGN) * ALIGN
                continue
            argument = next(given)
            is_place = isinstance(argument, Value) and argument.role != "constant"
            arguments.append(places[argument] if is_place else next(constants))
        return _call_of(self.names[call.function], arguments)

    def _source(self, layer: int, source: Source, dtype: str) -> str:
        """Return the pointer to the first row that a call of a layer reads."""
        first = times(f"s->next{layer}", source.stride)
        if source.buffer is None:
            value = self.operation.inputs[source.input]
            return f"s->{self._inputs[source.input]} + {times(first, prod(value.shape[2:]))}"
        return _cast(self._row(source.buffer, _plus(first, -source.before)), dtype, "const ")

    def _target(self, layer: int, result: Value) -> str:
        """Return the pointer to the first row that a call of a layer writes."""
        if layer == len(self.operation.layers) - 1:
            return f"s->result + {times(f's->next{layer}', prod(result.shape[2:]))}"
        buffer = next(number for number, rows in enumerate(self.operation.buffers) if rows.layer == layer)
        return _cast(self._row(buffer, f"s->next{layer}"), result.dtype, "")

    def _row(self, buffer: int, row: str) -> str:
        """Return the pointer to the bytes of a row of a buffer."""
        rows = self.operation.buffers[buffer]
        return f"{_plus('s->rows', rows.offset)} + ({row} - s->first{buffer}) * {rows.pitch}"

    def _fill_name(self, buffer: int) -> str:
        return f"{self.name}_fill{buffer}"

    def _drop_name(self, buffer: int) -> str:
        return f"{self.name}_drop{buffer}"

    def _copy(self, target: str, source: str, size: str, *, is_overlapping: bool) -> str:
        if self.operation.copies == "portable":
            function = "memmove" if is_overlapping else "memcpy"
            return _call_of(function, [target, source, f"(size_t)({size})"])
        if self.operation.copies == "rvv":
            return _call_of("copy_bytes", [target, source, size])
        return _call_of("mla_copy", [target, source, f"(uint32_t)({size})"])

    def _fill(self, target: str, buffer: Buffer, size: str) -> str:
        function = "memset" if self.operation.copies == "portable" else "fill_bytes"
        return f"{function}({target}, {buffer.fill}, {size});"

    def _readers(self, buffer: int) -> list[tuple[int, Source]]:
        """Return the layers that read a buffer."""
        return [
            (number, source)
            for number, layer in enumerate(self.operation.layers)
            for source in layer.sources
            if source.buffer == buffer
        ]

    def _has_bottom(self, buffer: int) -> bool:
        """Whether rows of padding below the tensor are read."""
        return any(
            (self.operation.layers[number].height - 1) * source.stride - source.before + source.reach
            > self.operation.buffers[buffer].height
            for number, source in self._readers(buffer)
        )


def _plus(text: str, offset: int) -> str:
    return f"{text}{plus(offset)}"


def _least(terms: Sequence[str]) -> str:
    """Return the least of some terms."""
    first, *others = dict.fromkeys(terms)
    for other in others:
        first = f"lesser({first}, {other})"
    return first


def _cast(text: str, dtype: str, qualifier: str) -> str:
    """Return a pointer to bytes as a pointer to elements."""
    return text if dtype == "int8" else f"({qualifier}{c_type(dtype)} *)({qualifier}void *)({text})"


def _call_of(function: str, arguments: Sequence[str]) -> str:
    """Return the statement of a call."""
    return f"{function}({', '.join(arguments)});"
