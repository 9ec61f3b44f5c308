# SPDX-License-Identifier: Apache-2.0
"""The end of a layer in C: from a sum to a stored result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import clamped, clamped_float
from opwest.compiler.emission.function import number
from opwest.compiler.ir.operations import Clamp, Finish, Sums
from opwest.compiler.semantics.fixed_point import Requantisation, Rounding, reduced


@dataclass(frozen=True, eq=False)
class LayerEpilogue:
    """How sums end: constants per channel, and the C expression of one result."""

    arrays: tuple[tuple[str, str, Any], ...]
    """Parameters: name, dtype, content; one element per channel."""
    helpers: tuple[str, ...]
    headers: tuple[str, ...]
    load: tuple[str, ...]
    """Declarations of the numbers of a channel; {c} is its index, {n} a suffix of the variables."""
    expression: str
    """The result of {sum}."""
    prologue: tuple[str, ...] = ()
    """Declarations at the start of the function."""
    fill: str = "0"
    """The value of padding."""

    @property
    def constants(self) -> dict[str, Any]:
        """The contents of the parameters by name."""
        return {name: array for name, _, array in self.arrays}

    def loads(self, channel: str, suffix: str = "") -> list[str]:
        """Return the declarations for a channel."""
        return [line.format(c=channel, n=suffix) for line in self.load]

    def result(self, value: str, suffix: str = "") -> str:
        """Return the expression of a result."""
        return self.expression.format(sum=value, n=suffix)


def ending(
    finish: Finish,
    bound: Any = None,
    fill: int = 0,
    shared: bool = False,
    is_wide: bool = False,
    counts: Mapping[str, int] = MappingProxyType({}),
    result: str = "int32",
) -> LayerEpilogue:
    """Return the end of a layer. `bound` is the greatest magnitude of the sums of each channel; `is_wide`: 64 bits.

    With `shared` the numbers of the layer are a constant array, so that layers of equal shapes have equal functions;
    `counts` are further numbers. `result` is the dtype of integer results.
    """
    if isinstance(finish, Clamp):
        return _clamped(finish)
    if isinstance(finish, Sums):
        return LayerEpilogue((), (), (), (), "(int32_t)({sum})", (), str(fill))
    numbers: dict[str, int] = {}

    def named(name: str, value: int) -> str:
        numbers[name] = value
        return name if shared else f"({value})" if value < 0 else str(value)

    scaling, arrays, load, used, headers = _scaling(finish, bound, is_wide, named)
    zero = named("zero", finish.zero)
    plus = "" if zero == "0" else f" + {zero}"
    expression = clamped(f"{scaling}{plus}", named("low", finish.low), named("high", finish.high), result)
    padding = named("fill", fill)
    numbers.update(counts)
    prologue: list[str] = []
    if shared:
        prologue = [f"const int32_t {name} = numbers[{place}];" for place, name in enumerate(numbers)]
        arrays = [*arrays, ("numbers", "int32", np.asarray(list(numbers.values()), np.int32))]
    return LayerEpilogue(tuple(arrays), (*used, "clamp"), headers, tuple(load), expression, tuple(prologue), padding)


def _clamped(finish: Clamp) -> LayerEpilogue:
    """Return the end of a float layer."""
    low, high = finish.low, finish.high
    if low is None and high is None:
        return LayerEpilogue((), (), (), (), "{sum}")
    headers = ("math.h",) if low is None or high is None else ()
    return LayerEpilogue((), ("clampf",), headers, (), clamped_float("{sum}", low, high))


Arrays = list[tuple[str, str, Any]]


def _scaling(
    finish: Requantisation, bound: Any, is_wide: bool, named: Callable[[str, int], str]
) -> tuple[str, Arrays, list[str], tuple[str, ...], tuple[str, ...]]:
    """Return the expression of a scaled sum, its arrays, the declarations for a channel, helpers, headers."""
    if finish.rounding is Rounding.FLOAT:
        # Clamped before the rounding: lrintf() has no result beyond the range of long.
        low, high = (number(float(limit - finish.zero), "float32") for limit in (finish.low, finish.high))
        text = f"(int32_t)lrintf(clampf((float)({{sum}}) * {{scale}}, {low}, {high}))"
        if finish.real is not None:
            return _by_inverse(finish, f"(int32_t)lrintf(clampf({{}}, {low}, {high}))")
        if len(set(finish.scales)) == 1:
            scale = number(finish.scales[0], "float32")
            return text.replace("{scale}", scale), [], [], ("clampf",), ("math.h",)
        array = ("scale", "float32", np.asarray(finish.scales, np.float32))
        load = ["const float s{n} = scale[{c}];"]
        return text.replace("{scale}", "s{n}"), [array], load, ("clampf",), ("math.h",)
    helper, fixed, places = _fixed(finish, bound, is_wide)
    arrays: Arrays = []
    load, texts = [], []
    for name, short, kind, values in (("multiplier", "m", "int32", fixed), ("shift", "s", "int8", places)):
        if len(set(values)) == 1:
            texts.append(named(name, values[0]))
        else:
            arrays.append((name, kind, np.asarray(values, kind)))
            load.append(f"const int32_t {short}{{n}} = {name}[{{c}}];")
            texts.append(f"{short}{{n}}")
    return f"{helper}({{sum}}, {texts[0]}, {texts[1]})", arrays, load, (helper,), ()


def _by_inverse(
    finish: Requantisation, rounded: str
) -> tuple[str, Arrays, list[str], tuple[str, ...], tuple[str, ...]]:
    """Return what _scaling() does for PyTorch's arithmetic; `rounded` makes an integer of the result."""
    assert finish.real is not None
    data, inverse = number(finish.real[0], "float64"), number(finish.real[1], "float32")
    arrays: Arrays = []
    load: list[str] = []
    scale = f"(double){number(finish.scales[0], 'float32')}"
    if len(set(finish.scales)) > 1:
        arrays.append(("scale", "float32", np.asarray(finish.scales, np.float32)))
        load.append("const float s{n} = scale[{c}];")
        scale = "(double)s{n}"
    total = f"(double)({{sum}}) * {data} * {scale}"
    if finish.biases:
        arrays.append(("offset", "float32", np.asarray(finish.biases, np.float32)))
        load.append("const float b{n} = offset[{c}];")
        total += " + (double)b{n}"
    return rounded.format(f"(float)({total}) * {inverse}"), arrays, load, ("clampf",), ("math.h",)


def _fixed(finish: Requantisation, bound: Any, is_wide: bool) -> tuple[str, list[int], list[int]]:
    """Return the helper, the multipliers, and the shifts that the helper expects. A multiplier of 0 has any shift."""
    fixed = [m.fixed for m in finish.multipliers]
    shifts = [m.shift for m in finish.multipliers]
    if finish.rounding is Rounding.ONCE and not is_wide and max(shifts) <= -2:
        return "scale_once_high", fixed, [-1 - shift for shift in shifts]
    if finish.rounding is Rounding.ONCE:
        return "scale_once", fixed, [31 - shift for shift in shifts]
    if finish.rounding is Rounding.SIXTEEN:
        return "scale_once", reduced(fixed).tolist(), [15 - shift for shift in shifts]
    if any(shift > 0 for shift in shifts):
        return "scale_twice_left", fixed, [-shift for shift in shifts]
    rights = [-shift for shift in shifts]
    # A channel with the multiplier 0 has the shift 0; any other shift gives 0 as well.
    rights = [1 if f == 0 else r for f, r in zip(fixed, rights, strict=True)]
    greatest = np.asarray(bound if bound is not None else 2**31 - 1, np.float64)
    high = greatest * np.asarray(fixed, np.float64) / 2**31 + 2
    fits = bool(np.all(high + np.asarray([2.0 ** (r - 1) for r in rights]) < 2**31))
    if min(rights) > 0 and fits:
        return "scale_twice_positive" if finish.low == finish.zero else "scale_twice_fast", fixed, rights
    return "scale_twice", fixed, rights
