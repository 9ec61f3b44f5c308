# SPDX-License-Identifier: Apache-2.0
"""Padding. Sources in TFLite: kernels/pad.cc, mirror_pad.cc, internal/reference/pad.h."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.movement import INDEX, MOVED, integers

QUANTISED = ("int8", "uint8", "int16")


def amounts(node: Node) -> list[tuple[int, int]]:
    """Return the elements before and after each dimension. Raises Unsupported."""
    data, numbers = node.input(0), integers(node, 1)
    if len(numbers) != 2 * len(data.shape) or any(n < 0 for n in numbers):
        raise Unsupported(f"paddings {numbers} for shape {list(data.shape)}", "two numbers for each dimension")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _pad(node: Node) -> Sequence[Result]:
    data = node.input(0)
    value = node.optional(2)
    if value is not None and (value.size != 1 or value.dtype != data.dtype):
        raise Unsupported(f"a value of {value.dtype} {list(value.shape)}", f"one element of {data.dtype}")
    return [(data.dtype, tuple(n + sum(pair) for n, pair in zip(data.shape, amounts(node), strict=True)))]


def _mirror(node: Node) -> Sequence[Result]:
    data, less = node.input(0), mirror_offset(node)
    for n, pair in zip(data.shape, amounts(node), strict=True):
        if max(pair) > n - less:
            raise Unsupported(f"paddings {list(pair)} of {n} elements in the mode {node.options['mode']}")
    return _pad(node)


def mirror_offset(node: Node) -> int:
    """Return the elements at the edge that are not repeated: 1 for REFLECT, 0 for SYMMETRIC."""
    return 1 if node.options["mode"] == "REFLECT" else 0


def fill_of(node: Node) -> int | float | None:
    """Return the value of the padding of PAD or PADV2; None if it is computed when the model runs."""
    value = node.optional(2)
    if value is not None:
        return None if not value.is_constant else value.content.reshape(-1)[0].item()
    # The zero point of the result. Source: kernels/pad.cc, PadTyped.
    found = node.output.quantization
    if node.output.dtype in QUANTISED and found is not None:
        return found.zeros[0]
    return 0


specify(
    Operator("PAD", _pad, (f"{MOVED} int8|int16|{INDEX}",), known=(1,)),
    Operator("PADV2", _pad, (f"{MOVED} int8|int16|{INDEX} [{MOVED}]",), known=(1,)),
    Operator("MIRROR_PAD", _mirror, (f"{MOVED} {INDEX}",), {"mode": "REFLECT"}, known=(1,)),
)
