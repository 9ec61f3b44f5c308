# SPDX-License-Identifier: Apache-2.0
"""Operators of the user (`--operator`): their arguments determine what they accept."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.graph.user import KIND, bind


def _results(node: Node) -> Sequence[Result]:
    return [(argument.dtype, shape) for argument, _, shape in bind(node).writes]


specify(Operator(KIND, _results, options={"use": None}))
