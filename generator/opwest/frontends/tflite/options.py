# SPDX-License-Identifier: Apache-2.0
"""The options of an operator by the names of schema.fbs; enumerations by their names."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from opwest.compiler.graph.types import Damaged
from opwest.frontends.tflite.tensors import DTYPES

_ENUMERATIONS = {
    "fused_activation_function": "ActivationFunctionType",
    "padding": "Padding",
    "mode": "MirrorPadMode",
    "weights_format": "FullyConnectedOptionsWeightsFormat",
    "kernel_type": "LSTMKernelType",
    "output_type": "TensorType",
    "out_type": "TensorType",
    "in_data_type": "TensorType",
    "out_data_type": "TensorType",
    "quantized_bias_type": "TensorType",
}
"""The enumeration of an option, by the name of the option."""
_MOST_NUMBERS = 64
_MOST_ITEMS = 4096
"""The most numbers of a list in custom options."""


def read_options(operator: Any, wanted: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return the options with these names; without a table the default values of `wanted`. Raises Damaged."""
    options = _options(operator, label)
    if options is None:
        return dict(wanted)
    found = {}
    for name, default in wanted.items():
        method = re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), name)
        if not hasattr(options, method):
            found[name] = default
            continue
        if hasattr(options, f"{method}Length"):
            length = getattr(options, f"{method}Length")()
            if length > _MOST_NUMBERS:
                raise Damaged(f"operator {label} has an option '{name}' of {length} numbers")
            found[name] = tuple(int(getattr(options, method)(i)) for i in range(length))
            continue
        found[name] = _value(name, getattr(options, method)(), label)
    return found


def _options(operator: Any, label: str) -> Any:
    """Return the table with the options of an operator; None if it has none. Raises Damaged."""
    import tflite

    for union in ("BuiltinOptions", "BuiltinOptions2"):
        number, table = getattr(operator, f"{union}Type")(), getattr(operator, union)()
        if number == 0 or table is None:
            continue
        kind = names_of(union).get(number)
        if kind is None:
            raise Damaged(f"operator {label} has options of the unknown kind {number}")
        options = getattr(tflite, kind)()
        options.Init(table.Bytes, table.Pos)
        return options
    return None


def all_options(operator: Any) -> dict[str, Any]:
    """Return all options of an operator as numbers and lists of numbers, for operators of the user."""
    import tflite

    number, table = operator.BuiltinOptionsType(), operator.BuiltinOptions()
    kind = names_of("BuiltinOptions").get(number)
    if number == 0 or table is None or kind is None:
        return {}
    options = getattr(tflite, kind)()
    options.Init(table.Bytes, table.Pos)
    found: dict[str, Any] = {}
    for method in vars(type(options)):
        if method.startswith(("_", "Init", "GetRootAs")) or not method[0].isupper():
            continue
        if method.endswith(("Length", "AsNumpy", "IsNone", "BufferHasIdentifier")):
            continue
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", method).lower()
        if hasattr(options, f"{method}Length"):
            length = getattr(options, f"{method}Length")()
            found[name] = [getattr(options, method)(i) for i in range(min(length, _MOST_NUMBERS))]
            continue
        value = getattr(options, method)()
        if isinstance(value, (int, float)):
            found[name] = value
    return found


def custom_options(content: bytes) -> dict[str, Any]:
    """Return the numbers and lists of numbers of custom options that are a map of FlexBuffers; else nothing."""
    from flatbuffers import flexbuffers

    found: dict[str, Any] = {}
    try:
        root = flexbuffers.GetRoot(bytearray(content))
        if not root.IsMap:
            return {}
        entries = root.AsMap
        if len(entries) > _MOST_NUMBERS:
            return {}
        for key, value in zip(entries.Keys, entries.Values, strict=True):
            name = str(key.AsKey)
            if value.IsBool:
                found[name] = bool(value.AsBool)
            elif value.IsInt:
                found[name] = int(value.AsInt)
            elif value.IsFloat:
                found[name] = float(value.AsFloat)
            elif value.IsTypedVector or value.IsVector:
                items = value.AsTypedVector if value.IsTypedVector else value.AsVector
                if len(items) <= _MOST_ITEMS:
                    found[name] = [float(one.AsFloat) if one.IsFloat else int(one.AsInt) for one in items]
    except Exception:  # any bytes are custom options
        return {}
    return found


def _value(name: str, value: Any, label: str) -> Any:
    enumeration = _ENUMERATIONS.get(name)
    if enumeration is None:
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    names = names_of(enumeration)
    if value not in names:
        raise Damaged(f"operator {label} has an option '{name}' of the unknown value {value}")
    return DTYPES[names[value]] if enumeration == "TensorType" else names[value]


@functools.cache
def names_of(enumeration: str) -> dict[int, str]:
    """Return the names of an enumeration of the schema by their numbers."""
    import tflite

    values = vars(getattr(tflite, enumeration))
    return {number: name for name, number in values.items() if isinstance(number, int)}
