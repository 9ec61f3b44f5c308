# SPDX-License-Identifier: Apache-2.0
"""Conversion of dataclasses to JSON values and back, with validation of every field."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def encode(value: Any) -> Any:
    """Return a dataclass as dictionaries and lists."""
    return asdict(value)


def decode(kind: type[T], value: object, place: str = "") -> T:
    """Return the dataclass for a value of `encode`; unknown keys are ignored.

    Raises ValueError with the place of the first missing or invalid field.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{place or 'the value'} is not an object")
    hints = _hints(kind)  # type: ignore[arg-type]  # every type is hashable
    found = {}
    for field in fields(kind):  # type: ignore[arg-type]
        where = f"{place}.{field.name}".lstrip(".")
        if field.name in value:
            found[field.name] = _field(hints[field.name], value[field.name], where)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"missing {where!r}")
    return kind(**found)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields: evaluating them takes longer than reading a buffer."""
    return typing.get_type_hints(kind)


def _field(hint: Any, value: object, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        return _field(next(a for a in arguments if a is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is not a list")
        return tuple(_field(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, dict):
            raise ValueError(f"{where} is not an object")
        return {key: _field(arguments[1], item, f"{where}[{key!r}]") for key, item in value.items()}
    if is_dataclass(hint):
        return decode(hint, value, where)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = _real(value, where)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}, expected a finite number")
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{where} is {value!r:.40}, expected {_WORDS[hint]}")
    if hint is int and not 0 <= typing.cast(int, value) < 1 << 63:
        raise ValueError(f"{where} is {value}, expected a size or count")
    return value


def _real(value: int, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{where} is {str(value)[:20]}…, expected a finite number") from None


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
