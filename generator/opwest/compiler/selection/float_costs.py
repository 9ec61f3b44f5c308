# SPDX-License-Identifier: Apache-2.0
"""The remark of an import about the time of float32 operations on cores without an FPU, and of functions of libm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Function
from opwest.compiler.ir.elements import Dequantised, Quantised
from opwest.compiler.ir.labels import operator
from opwest.compiler.ir.operations import Elementwise, QuantizeEven, UserCall
from opwest.compiler.ir.program import Operation
from opwest.compiler.output.emit import source_of
from opwest.compiler.request import Options
from opwest.compiler.selection.choose import Choice, Row
from opwest.compiler.selection.costs import MOVING
from opwest.objects.targets import measured_cores

SHARE = 0.5
"""The part of the cycles from which on the remark is made."""
NAMED = 3
"""The operators that the remark names: those with the most cycles."""
_LIBM = re.compile(
    r"\b(?:a?cos|a?sin|a?tan|a?cosh|a?sinh|a?tanh|atan2|cbrt|erfc?|exp|exp2|expm1|fmod|log|log1p|log2|log10|pow)f\("
)
_CONVERSIONS = (Quantised, QuantizeEven, Dequantised)


@dataclass(frozen=True, eq=False)
class _Share:
    """The slow layers of a choice."""

    core: str
    has_fpu: bool
    part: float
    """Of the cycles of all layers."""
    rows: Sequence[Row]


def float_remark(choices: Iterable[tuple[str, Choice]], options: Options) -> str:
    """Return the remark about the cores with the greatest parts of such cycles; empty below SHARE of them on all.

    `choices`: for the cores whose costs decided.
    """
    shares = [_share(core, choice) for core, choice in choices]
    most = [
        max((share for share in shares if share.has_fpu == has_fpu), key=lambda share: share.part, default=None)
        for has_fpu in (False, True)
    ]
    slow = [share for share in most if share is not None and share.part >= SHARE]
    if not slow:
        return ""
    another = ", or use a core with an FPU" if not any(share.has_fpu for share in slow) else ""
    return f"note: {'; '.join(map(_text, slow))}\n  hint: {_way_out(slow[0], options)}{another}"


def _text(share: _Share) -> str:
    cycles: dict[str, float] = {}
    for row in share.rows:
        name = operator(row.operation.label)
        cycles[name] = cycles.get(name, 0) + row.cost.cycles
    names = sorted(cycles, key=lambda name: -cycles[name])
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    what = "functions of libm" if share.has_fpu else "float32 operations"
    where = share.core if share.has_fpu else f"processors without an FPU ({share.core})"
    return f"{what} take {share.part:.0%} of the cycles on {where}: {shown}"


def _way_out(share: _Share, options: Options) -> str:
    cycles = sum(row.cost.cycles for row in share.rows)
    converted = sum(row.cost.cycles for row in share.rows if _is_conversion(row.operation))
    if converted <= cycles / 2:
        return "quantise the model to int8, with int8 inputs and outputs: opwest quantise"
    if options.float_io:
        return "import without --float-io, which adds the conversions"
    return "convert the model with int8 inputs and outputs instead of float32"


def _share(core: str, choice: Choice) -> _Share:
    has_fpu = bool(measured_cores()[core].fpu)
    rows = [row for row in choice.rows if _is_slow(row, has_fpu)]
    cycles = sum(row.cost.cycles for row in choice.rows if not isinstance(row.operation, UserCall))
    part = sum(row.cost.cycles for row in rows) / cycles if cycles else 0.0
    return _Share(core, has_fpu, part, rows)


def _is_slow(row: Row, has_fpu: bool) -> bool:
    """Whether a layer computes in float32 on a core without an FPU, or calls libm."""
    values = (*row.operation.inputs, *row.operation.results)
    if isinstance(row.operation, (*MOVING, UserCall)) or all(value.dtype != "float32" for value in values):
        return False
    return not has_fpu or _calls_libm(row.call.function)


@lru_cache(maxsize=256)
def _calls_libm(function: Function) -> bool:
    return _LIBM.search(source_of({function: "operator"}, "")) is not None


def _is_conversion(operation: Operation) -> bool:
    return isinstance(operation, Elementwise) and isinstance(operation.function, _CONVERSIONS)
