# SPDX-License-Identifier: Apache-2.0
"""Operators of the user."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node, Tensor
from opwest.importers.models.graph.user import KIND, Argument, bind
from opwest.importers.models.ir.program import Value
from opwest.importers.models.ir.user import UserCall
from opwest.importers.models.lower.builder import Builder, lowers


@lowers(KIND)
def user_operator(node: Node, build: Builder) -> None:
    """One call; options that are arrays become constants."""
    bound = bind(node)
    values: dict[Argument, Value] = {}
    for argument, given in bound.reads:
        is_tensor = isinstance(given, Tensor)
        values[argument] = build.value(given) if is_tensor else build.constant(argument.name, given)
    inputs = tuple(values.values())
    results = tuple(build.value(tensor) for _, tensor, _ in bound.writes)
    values |= dict(zip((argument for argument, _, _ in bound.writes), results, strict=True))
    operator = node.options["use"].operator
    tensors = tuple((one, values[one]) for one in operator.arguments if one in values)
    build.add(UserCall(node.label, inputs, results, operator, tensors, bound.scalars))
