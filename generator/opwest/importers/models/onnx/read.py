# SPDX-License-Identifier: Apache-2.0
"""An ONNX file as graphs."""

from __future__ import annotations

from collections.abc import Mapping

from opwest.importers.models.graph.types import Graph, Rules
from opwest.importers.models.graph.user import UserOperator
from opwest.importers.models.onnx.fold import read_model
from opwest.importers.models.onnx.simplify import simplify
from opwest.importers.models.onnx.translate import translate


def read_onnx(
    content: bytes, rules: Rules | None = None, users: Mapping[str, UserOperator] | None = None
) -> tuple[Graph, ...]:
    """Return the model of a file. Raises Damaged."""
    return (translate(simplify(read_model(content, users or {})), rules or Rules()),)
