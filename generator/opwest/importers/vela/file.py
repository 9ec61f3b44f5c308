# SPDX-License-Identifier: Apache-2.0
"""What a file of Vela contains, independent of its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opwest.diagnostics import Location
from opwest.importers.models.graph.types import Graph, Node, Tensor
from opwest.importers.models.graph.user import KIND, Argument, Use, UserOperator
from opwest.records import dataclass

CUSTOM_CODE = "ethos-u"
"""The custom code of the operator that runs on the NPU."""


@dataclass(frozen=True, eq=False)
class Call:
    """One subgraph that runs on the NPU."""

    label: str
    """The operator in messages."""
    payload: bytes
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Memory:
    """The memory that all subgraphs of the NPU have in common; sizes in bytes."""

    weights: Any
    """A numpy array of uint8, read only; possibly empty."""
    arena: int
    """The scratch memory, which contains inputs and outputs."""
    fast: int | None
    """The fast scratch memory; None: it is the arena."""


@dataclass(frozen=True, eq=False)
class VelaFile:
    """A model with subgraphs for the NPU."""

    graph: Graph
    """Subgraphs for the NPU are operators of the user: the keys of `calls`."""
    calls: Mapping[UserOperator, Call]
    memory: Memory
    offsets: Mapping[Tensor, int]
    """The places of tensors in the arena, bytes; tensors that are absent are not planned."""
    remarks: tuple[str, ...] = ()


def node_of(call: Call, number: int, place: str) -> tuple[Node, UserOperator]:
    """Return the node of a subgraph for the NPU, with its operator."""
    where = Location(place)
    arguments = tuple(
        Argument(f"{name}{i}", one.dtype, one.shape, direction, False, where, {})
        for name, direction, tensors in (("x", "in", call.inputs), ("y", "out", call.outputs))
        for i, one in enumerate(tensors)
    )
    operator = UserOperator(f"npu_{number}", where, arguments, False, {}, None, {"objects": []})
    node = Node(KIND, call.inputs, call.outputs, {"use": Use(operator, {})}, call.label, source=CUSTOM_CODE)
    return node, operator
