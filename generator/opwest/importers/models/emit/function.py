# SPDX-License-Identifier: Apache-2.0
"""C functions and their calls."""

from __future__ import annotations

from typing import Any

from opwest.importers.models.graph.user import UserOperator
from opwest.importers.models.ir.program import Value
from opwest.records import dataclass

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
        aliased = {name for one in self.parameters for name in one.in_place}
        listed = []
        for one in self.parameters:
            constant = "const " if one.direction == "in" else ""
            restrict = "" if one.in_place or one.name in aliased else "restrict "
            listed.append(f"{constant}{c_type(one.dtype)} *{restrict}{one.name}")
        kind = "int32_t" if self.has_status else "void"
        text = f"{_folded(f'{specifiers}{kind} {symbol}(', listed)}\n{{\n{self.body}}}\n"
        return text + (f"\nint32_t {check_of(symbol)}(void)\n{{\n{self.check}}}\n" if self.check else "")


def check_of(symbol: str) -> str:
    """Return the symbol of the function that checks an operator when the model is opened."""
    return f"{symbol}_check"


def _folded(start: str, items: list[str]) -> str:
    """Return a parameter list, at most 100 columns wide."""
    lines, line = [], start
    for number, item in enumerate(items):
        text = item + (")" if number == len(items) - 1 else ",")
        if number and len(line.expandtabs(8)) + 1 + len(text) > 100:
            lines.append(line)
            line = "\t" + text
        else:
            line += text if number == 0 else f" {text}"
    return "\n".join([*lines, line])


@dataclass(frozen=True)
class Call:
    """A function with its arguments, one per parameter except scratch memory. Arrays become constants."""

    function: Function
    arguments: tuple[Value | Any, ...]
    label: str
    scalars: tuple[int | float | bool, ...] = ()
    """The scalars of an operator of the user, in order."""
