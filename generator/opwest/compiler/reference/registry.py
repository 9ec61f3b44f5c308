# SPDX-License-Identifier: Apache-2.0
"""The functions of operators, by kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwest.compiler.graph.types import Node, Rules

Arrays = Sequence[Any]
"""numpy arrays by input or result; None: an absent optional input."""
Function = Callable[[Node, Arrays, Rules], Any]
"""From a node and the arrays of its inputs to the array of its result, or a tuple of arrays."""

FUNCTIONS: dict[str, Function] = {}
"""Importing the package fills it."""


def interprets(*kinds: str) -> Callable[[Function], Function]:
    """Register a function for operators. It converts its result to the dtype and the shape of the node's."""

    def register(function: Function) -> Function:
        for kind in kinds:
            assert kind not in FUNCTIONS, kind
            FUNCTIONS[kind] = function
        return function

    return register
