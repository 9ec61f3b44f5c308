# SPDX-License-Identifier: Apache-2.0
"""C functions and their calls."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.user import UserOperator
from opwest.compiler.ir.operations import UserCall
from opwest.compiler.ir.program import Operation, Value

_DECLARATION = re.compile(
    r"(?:(?:const|static|struct|volatile) )*(?!return|goto)[a-z_]\w* \*?(?:const |restrict )*\w+(?: = |\[|;|, \w+ = )"
)
"""The start of a line with a declaration: a type and a name."""


class Lines:
    """The body of a function. `compiler/output/source.py` formats it: statements can share a line."""

    def __init__(self, depth: int = 1) -> None:
        self._lines: list[str] = []
        self._depth = depth
        self._declares = False
        """Whether the last line is a declaration: an empty line separates it from statements."""

    def add(self, *lines: str) -> None:
        """Append lines at the current depth; an empty one separates."""
        for line in lines:
            declares = line.endswith(";") and _DECLARATION.match(line) is not None
            if self._declares and line and not declares:
                self._lines.append("")
            self._declares = declares
            self._lines.append("\t" * self._depth + line if line else "")

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
        self._declares = False
        if not self._lines[-1]:
            self._lines.pop()
        self.add("}")

    @contextmanager
    def loop(self, variable: str, count: int, step: int = 1) -> Iterator[None]:
        """Append a loop from 0."""
        increment = f"{variable}++" if step == 1 else f"{variable} += {step}"
        with self.block(f"for (int {variable} = 0; {variable} < {count}; {increment})"):
            yield

    def repeat(self, variable: str, count: int) -> AbstractContextManager[None]:
        """Append a loop from 0, or only its body for one turn."""
        return self.loop(variable, count) if count > 1 else nullcontext()

    def __str__(self) -> str:
        return "\n".join(self._lines).rstrip("\n") + "\n" if self._lines else ""


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


C_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}
"""The C types of dtypes; those of integers have the suffix _t."""


def c_type(dtype: str) -> str:
    """Return the C type of an element."""
    return C_TYPES.get(dtype, f"{dtype}_t")


@dataclass(frozen=True)
class Parameter:
    """A pointer parameter."""

    name: str
    dtype: str
    direction: str = "in"
    """in, out, inout, scratch."""
    in_place: tuple[str, ...] = ()
    """The inputs whose memory a result may reuse."""
    elements: int = 0
    """The size of scratch memory."""
    align: int = 0
    """The alignment in bytes that the function requires; 0: that of the element."""

    @property
    def nbytes(self) -> int:
        """The bytes of scratch memory."""
        return self.elements * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Function:
    """A C function without its name. Operations with equal functions share one."""

    base: str
    """The start of its name."""
    parameters: tuple[Parameter, ...]
    body: str
    """The lines between the braces."""
    helpers: tuple[str, ...] = ()
    """Names of `helpers.py` that the body calls."""
    headers: tuple[str, ...] = ()
    """Standard headers that the body requires, such as math.h."""
    has_status: bool = False
    """Whether it returns 0 or a negative errno."""
    check: str = ""
    """The body of the function that the model's open calls; empty: none. It returns 0 or a negative errno."""
    external: tuple[str, ...] = ()
    """The functions of CMSIS-NN that it calls, or that those call."""
    user: UserOperator | None = None
    """The operator of the user that it is; its definition is in a file of the user."""
    definitions: tuple[str, ...] = ()
    """Static functions and types that the body uses, in the order of their uses. Equal texts are emitted once."""

    def text(self, symbol: str, specifiers: str = "") -> str:
        """Return the definition. `specifiers`: text before it, such as `static`."""
        aliased = {name for parameter in self.parameters for name in parameter.in_place}
        listed = []
        for parameter in self.parameters:
            constant = "const " if parameter.direction == "in" else ""
            restrict = "" if parameter.in_place or parameter.name in aliased else "restrict "
            listed.append(f"{constant}{c_type(parameter.dtype)} *{restrict}{parameter.name}")
        kind = "int32_t" if self.has_status else "void"
        text = f"{specifiers}{kind} {symbol}({', '.join(listed)})\n{{\n{self.body}}}\n"
        return text + (f"\nint32_t {check_of(symbol)}(void)\n{{\n{self.check}}}\n" if self.check else "")


def check_of(symbol: str) -> str:
    """Return the symbol of the function that checks an operator when the model is opened."""
    return f"{symbol}_check"


@dataclass(frozen=True)
class Call:
    """A function with its arguments, one per parameter except scratch memory. Arrays become constants."""

    function: Function
    arguments: tuple[Value | Any, ...]
    label: str
    scalars: tuple[int | float | bool, ...] = ()
    """The scalars of an operator of the user, in order."""


def call_for(
    operation: Operation,
    base: str,
    body: Lines | str,
    arguments: Mapping[str, Value | Any],
    in_place: tuple[str, ...] = (),
    scratch: Iterable[Parameter] = (),
    *,
    states: Sequence[str] = (),
    results: Sequence[str] = ("result",),
    helpers: Iterable[str] = (),
    headers: Iterable[str] = (),
    **options: Any,
) -> Call:
    """Return the call of a function with the parameters `arguments` (inputs and constants), `results` and `scratch`.

    `states`: the inputs that the function changes. `in_place`: the inputs that a result can replace, if its rows follow
    each other. `options`: those of Function.
    """
    parameters = (
        *(Parameter(name, str(value.dtype), "inout" if name in states else "in") for name, value in arguments.items()),
        *(
            Parameter(name, value.dtype, "out", () if value.pitch else in_place)
            for name, value in zip(results, operation.results, strict=False)
        ),
        *scratch,
    )
    function = Function(base, parameters, str(body), tuple(helpers), tuple(headers), **options)
    return Call(function, (*arguments.values(), *operation.results), operation.label)


def is_int8_pair(operation: Operation) -> bool:
    """Whether the inputs are two int8 tensors with the shape of the int8 result."""
    result = operation.results[0]
    given = [(value.dtype, value.shape) for value in operation.inputs]
    return given == [("int8", result.shape)] * 2 and result.dtype == "int8"


def call_of(
    operation: Operation,
    base: str,
    lines: Lines,
    inputs: Sequence[str] = ("data",),
    constants: Iterable[tuple[str, Any]] = (),
    **options: Any,
) -> Call:
    """Return the call of a function whose parameters are the inputs of an operation, constants, results and scratch.

    `inputs` are names; there can be more than the operation has inputs. Constants that are None have no parameter.
    `options` are those of `call_for`.
    """
    arguments = dict(zip(inputs, operation.inputs, strict=False))
    arguments.update((name, array) for name, array in constants if array is not None)
    return call_for(operation, base, lines, arguments, **options)


PROCESSORS = {"mla": ("mla",), "dsp": ("dsp", "mla"), "mve": ("mve", "dsp", "mla"), "rvv": ("rvv",)}
"""The classes of processors, and the prefixes of the variants that run on each, the fastest first.

mla: Armv7-M without the DSP extension (Cortex-M3); dsp: with it (M4, M7, M33); mve: the vector extension (M55, M85).
rvv: RV32 with the vector extension for embedded processors, Zve32x, or V.
"""
LIBRARY_VARIANTS = {"mla": "none", "dsp": "dsp", "mve": "mve"}
"""By class of processors: the end of the name of a library's variant with its instructions."""
EVERYWHERE = ("portable", "stripes")
"""The variants that run on all processors. An operation has one of them, and perhaps portable-..., also in C."""


def runs_everywhere(name: str) -> bool:
    """Whether a variant is C for all processors."""
    return name.split("-")[0] in EVERYWHERE


Render = Callable[..., Call | None]
"""From an operation to its call; None if the variant does not apply.

With a parameter `shared` it can also return a function that takes the numbers of the layer from a constant array. With
a parameter `loop_bytes` its inner loops have at most about this number of bytes of code; None: as many as are fast.
"""


@dataclass(frozen=True)
class Variant:
    """One way to compute an operation."""

    name: str
    """portable: C for every processor; cmsis-nn...: calls of a library; otherwise a class of processors, a hyphen and
    the technique."""
    render: Render
    has_pitch: bool = False
    """Whether it can write results whose rows do not follow each other: `Value.pitch`."""
    is_exact: bool = True
    """Whether its results are those of the portable variant, bit for bit. Those of float32 can have other last bits."""

    def call(self, operation: Operation, shared: bool = False, loop_bytes: int | None = None) -> Call | None:
        """Return the call; None if the variant does not apply."""
        if not self.has_pitch and any(result.pitch for result in operation.results):
            return None
        options: dict[str, Any] = {}
        if shared and _takes(self.render, "shared"):
            options["shared"] = True
        if _takes(self.render, "loop_bytes"):
            options["loop_bytes"] = loop_bytes
        # The search for variants requests each call many times.
        calls = _CALLS.setdefault(operation, {})
        key = (self.render, *options.items())
        if key not in calls:
            calls[key] = self.render(operation, **options)
        return calls[key]


VARIANTS: dict[type, list[Variant]] = {}
"""Filled by importing `compiler/kernels/`."""
_CALLS: WeakKeyDictionary[Operation, dict[tuple[Any, ...], Call | None]] = WeakKeyDictionary()
"""The calls of the operations in use."""


def emits(
    operation: type, name: str = "portable", *, has_pitch: bool = False, is_exact: bool = True
) -> Callable[[Render], Render]:
    """Register a variant. `has_pitch`: it writes results with a pitch, too; others do not get them.

    `is_exact`: False for float32 results with other last bits than those of the portable variant.
    """

    def register(render: Render) -> Render:
        VARIANTS.setdefault(operation, []).append(Variant(name, render, has_pitch, is_exact))
        return render

    return register


@functools.cache
def _takes(render: Render, parameter: str) -> bool:
    return parameter in inspect.signature(render).parameters


@emits(UserCall)
def render(operation: UserCall) -> Call:
    """Return the call."""
    user = operation.operator
    parameters = tuple(
        Parameter(
            argument.name,
            argument.dtype,
            argument.direction,
            tuple(argument.keys.get("in_place", ())),
            prod(argument.shape or ()) if argument.direction == "scratch" else 0,
        )
        for argument in user.arguments
        if not argument.is_scalar
    )
    values = tuple(value for _, value in operation.tensors)
    return Call(Function(user.name, parameters, "", user=user), values, operation.label, operation.scalars)
