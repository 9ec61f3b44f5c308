# SPDX-License-Identifier: Apache-2.0
"""Checked access to JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from opwest.compiler.graph.types import Damaged

T = TypeVar("T")
_NAMES: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text", int: "an integer", bool: "a bool"}


def kind_of(value: Any, kind: type[T], where: str) -> T:
    """Return a value of a type. Raises Damaged."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Damaged(f"{where} is not {_NAMES[kind]}")
    return value


def field_of(values: Any, name: str, kind: type[T], where: str) -> T:
    """Return a member of an object. Raises Damaged."""
    if name not in kind_of(values, dict, where):
        raise Damaged(f"{where} has no '{name}'")
    return kind_of(values[name], kind, f"'{name}' of {where}")


def whole(value: Any, where: str) -> int:
    """Return an integer. Raises Damaged."""
    return kind_of(value, int, f"a number of {where}")


def union_of(value: Any, where: str) -> tuple[str, Any]:
    """Return the name and the value of a union of torch's schema: an object with one member. Raises Damaged."""
    if not isinstance(value, dict) or len(value) != 1:
        raise Damaged(f"{where} is no union of one member")
    [(name, content)] = value.items()
    return name, content
