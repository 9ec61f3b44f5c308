# SPDX-License-Identifier: Apache-2.0
"""The functions that open calls to check the firmware that operators are part of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opwest.base.diagnostics import nearest
from opwest.model.inputs.context import Context
from opwest.model.inputs.files import Linkable
from opwest.model.types.model import Model, Operator


def checks_of(operators: Iterable[Operator]) -> dict[str, Operator]:
    """Return the symbols of checks, each with the first operator that has it."""
    checks: dict[str, Operator] = {}
    for operator in operators:
        if operator.check:
            checks.setdefault(operator.check, operator)
    return checks


def checked_steps(model: Model) -> dict[str, int]:
    """Return the checks of the operators that steps call, each with the first such step."""
    steps: dict[str, int] = {}
    for number, step in enumerate(model.steps):
        if step.operator.check:
            steps.setdefault(step.operator.check, number)
    return steps


def report_checks(
    context: Context, checks: Mapping[str, Operator], linked: Sequence[Linkable], where: str, *, unread: bool
) -> None:
    """Report checks that no file defines, unless an `unread` one may, and functions with another prototype."""
    for symbol, operator in checks.items():
        at = context.section("operators")[operator.name].value_location("check")
        expected = f"int32_t {symbol}(void)"
        owners = [linkable for linkable in linked if symbol in linkable.defined_functions]
        if not owners and not unread:
            functions = set().union(*(linkable.defined_functions for linkable in linked))
            context.faults.error(
                f"no object{where} defines the function {symbol!r} that checks operator {operator.name!r}",
                at,
                expected=expected,
                hint=nearest(symbol, functions),
            )
        for owner in owners:
            function = owner.c_functions.get(symbol)
            if function is None:
                continue
            # `parameters` is None if they are unknown.
            if function.parameters != 0 or function.returns not in ("int", "int32_t"):
                context.faults.error(
                    f"{owner.name}:{function.line}: function {symbol!r} is not the check of an operator",
                    at,
                    expected=expected,
                )
