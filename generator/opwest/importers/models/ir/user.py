# SPDX-License-Identifier: Apache-2.0
"""Calls of operators of the user."""

from __future__ import annotations

from opwest.importers.models.graph.user import Argument, UserOperator
from opwest.importers.models.ir.program import Operation, Value
from opwest.records import dataclass


@dataclass(frozen=True, eq=False)
class UserCall(Operation):
    """inputs and results in the order of the arguments."""

    operator: UserOperator
    tensors: tuple[tuple[Argument, Value], ...]
    """The arguments that are tensors, in order, without scratch memory."""
    scalars: tuple[int | float | bool, ...]
