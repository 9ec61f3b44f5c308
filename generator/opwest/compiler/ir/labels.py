# SPDX-License-Identifier: Apache-2.0
"""Labels of operations: the number and the kind of the operator in the model, a part of it, the name of its result.

Such as `6 (Softmax): transpose, result 'p'`. The number comes first: `layers_of` of output/placement.py reads it.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from opwest.compiler.ir.elements import Arithmetic
from opwest.compiler.ir.movement import Move
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Operation

_RESULT = ", result "
_PART = "): "
_SIGNS = {"+": "sum", "-": "difference", "*": "product", "/": "quotient"}


def layer(label: str) -> str:
    """Return a label without the name of the result: the name of a row in tables."""
    return label.partition(_RESULT)[0]


def operator(label: str) -> str:
    """Return the number and the kind of the operator of a label."""
    name, part, _ = layer(label).partition(_PART)
    return f"{name})" if part else name


def with_part(label: str, part: str) -> str:
    """Return the label of an operation that computes a part of the operator."""
    name, result, rest = label.partition(_RESULT)
    return f"{name}{', ' if _PART in name else ': '}{part}{result}{rest}"


def of_both(first: str, second: str) -> str:
    """Return the label of an operation that computes two operators."""
    return f"{layer(first)}, {second}"


def what(operation: Operation) -> str:
    """Return what an operation does, in one or two words."""
    if isinstance(operation, Move):
        return "copy"
    if isinstance(operation, Elementwise) and isinstance(operation.function, Arithmetic):
        return _SIGNS[operation.function.operator]
    kind = type(operation.function if isinstance(operation, Elementwise) else operation).__name__
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", kind).lower()


def distinct(operations: Sequence[Operation], parts: Sequence[str]) -> list[Operation]:
    """Return operations with a part in each label that several of them have, such as `3 (Gelu): tanh`.

    `parts`: for each operation. Equal parts of an operator are numbered.
    """
    uses = Counter(operation.label for operation in operations)
    words = [part if uses[operation.label] > 1 else "" for operation, part in zip(operations, parts, strict=True)]
    counts = Counter(_keys(operations, words))
    numbers = Counter[tuple[str, str]]()
    made = []
    for operation, key in zip(operations, _keys(operations, words), strict=True):
        label, part = key
        numbers[key] += 1
        number = f" {numbers[key]}" if counts[key] > 1 else ""
        made.append(dataclasses.replace(operation, label=with_part(label, part + number)) if part else operation)
    return made


def _keys(operations: Iterable[Operation], words: Iterable[str]) -> list[tuple[str, str]]:
    return [(operation.label, part) for operation, part in zip(operations, words, strict=True)]
