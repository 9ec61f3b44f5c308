# SPDX-License-Identifier: Apache-2.0
"""The operators in the table of microTVM's system library, and those that require an adapter."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.model.c_names import CNames
from opwest.model.model import Model, Operator
from opwest.records import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One function of the table: its name there, and its symbol."""

    name: str
    symbol: str


@dataclass(frozen=True, slots=True)
class Library:
    """The table of an application, and the model that defines it."""

    lead: str
    rows: tuple[Row, ...]


def system_library(models: Sequence[Model]) -> Library | None:
    """Return the table of all models that request it; None if there is none."""
    asking = [model for model in models if model.compat]
    if not asking:
        return None
    return Library(asking[0].name, tuple(row for model in asking for row in rows(model)))


def rows(model: Model) -> list[Row]:
    """Return the functions of one model, under the names in TVM's table."""
    names = CNames(model.name)
    found: dict[str, Row] = {}
    for operator in model.operators:
        if operator.convention.is_of_system_library:
            found.setdefault(operator.symbol, Row(operator.symbol, names.operator(operator.symbol)))
        elif model.compat == "tvm-crt-all":
            found.setdefault(operator.name, Row(operator.name, names.packed_adapter(operator.name)))
    return list(found.values())


def adapted(model: Model) -> list[Operator]:
    """Return the operators that need an adapter."""
    if model.compat != "tvm-crt-all":
        return []
    return [operator for operator in model.operators if not operator.convention.is_of_system_library]
