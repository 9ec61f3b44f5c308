# SPDX-License-Identifier: Apache-2.0
"""Arguments in tables of pointers, and pointers without a tensor: the keys `table` and `nulls`."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.diagnostics import Location
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context
from opwest.model.types.c_names import check_name
from opwest.model.types.conventions import POINTER_TABLES, UNPACKED, Convention
from opwest.model.types.dtypes import DTYPES
from opwest.model.types.passing import Nulls

_NULLS_KEYS = ("name", "dtype", "nulls", "table")


def check_table(context: Context, entry: Mapping, convention: Convention) -> None:
    """Report a table in another convention, and a scalar in a table."""
    if "table" not in entry:
        return
    at = entry.value_location("table")
    if not convention.has_tables:
        context.faults.error(
            f"argument {entry['name']!r} has 'table' in an operator with the convention {convention.name}",
            at,
            expected=f"convention: {POINTER_TABLES.name}",
        )
    elif entry.get("scalar", False):
        context.faults.error(
            f"argument {entry['name']!r} is a scalar in table {entry['table']!r}",
            at,
            expected="a tensor, or a scalar without 'table'",
            hint="a table contains pointers: declare a number in memory as a tensor with shape: [1]",
        )


def read_nulls(context: Context, entry: Mapping, convention: Convention, before: int) -> Nulls:
    """Return pointers without a tensor; report a convention that has none, and keys of tensors."""
    count: int = entry["nulls"]
    check_name("argument", entry["name"], entry.value_location("name"), context.faults)
    if not convention.is_plain:
        context.faults.error(
            f"argument {entry['name']!r} has 'nulls' in an operator with the convention {convention.name}",
            entry.value_location("nulls"),
            expected=f"convention: {UNPACKED.name} or {POINTER_TABLES.name}",
        )
    for key in entry:
        if key not in _NULLS_KEYS:
            context.faults.error(
                f"argument {entry['name']!r} has 'nulls' and {key!r}",
                entry.key_location(key),
                expected=f"the keys {', '.join(_NULLS_KEYS)}",
                hint="a pointer that is always NULL has no tensor",
            )
    if count > 1 and "table" not in entry:
        context.faults.error(
            f"argument {entry['name']!r} has 'nulls: {count}' and no 'table'",
            entry.value_location("nulls"),
            expected="nulls: 1, or a table",
        )
    check_table(context, entry, convention)
    at = entry.value_location("name")
    return Nulls(entry["name"], DTYPES[entry["dtype"]], count, entry.get("table"), before, at)


def check_order(context: Context, items: Sequence[tuple[Mapping, Location]]) -> None:
    """Report an entry that does not follow the other entries of its table."""
    closed: set[str] = set()
    table: str | None = None
    for item, _ in items:
        given = item.get("table")
        if given != table and table is not None:
            closed.add(table)
        table = given
        if given in closed:
            context.faults.error(
                f"argument {item['name']!r} does not follow the other entries of table {given!r}",
                item.value_location("table"),
                expected="the entries of a table one after the other",
                hint="their order is that of the table; a table is one parameter of the function",
            )
