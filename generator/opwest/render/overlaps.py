# SPDX-License-Identifier: Apache-2.0
"""The comparisons of the caller's buffers with each other, with the pools and with the workspace."""

from __future__ import annotations

from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Interface, Model
from opwest.plan.memory import MemoryPlan
from opwest.render.tables.tensors import used_pools
from opwest.render.tensors import padded_elements

Role = Literal["input", "output", "pool", "workspace", "data"]


INLINE = 32
"""The largest number of comparisons in the code of run.

On a Cortex-M3 each has 9 bytes and 4 instructions. The function of the runtime with its table has 280 bytes and takes
20 instructions for each, so that more comparisons are smaller in it.
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """A range of bytes; `size` is None for the structure of the workspace."""

    role: Role
    index: int
    name: str
    """The tensor or the pool."""
    size: int | None


@dataclass(frozen=True, slots=True)
class Subject:
    """A range, and the others that it may not overlap."""

    memory: Memory
    others: tuple[Memory, ...]


def tensor_memory(model: Model) -> list[Memory]:
    """Return the buffers of the caller: inputs, then outputs; whole cache lines where a device requires them."""
    interfaces: tuple[tuple[Role, tuple[Interface, ...]], ...] = (("input", model.inputs), ("output", model.outputs))
    return [
        Memory(role, index, tensor.name, padded_elements(model, tensor) * tensor.type.dtype.size)
        for role, tensors in interfaces
        for index, tensor in enumerate(tensor for tensor in tensors if not tensor.placed)
    ]


def pool_memory(model: Model, plan: MemoryPlan) -> list[Memory]:
    """Return the pools of a workspace."""
    return [Memory("pool", i, pool.name, pool.size) for i, pool in enumerate(used_pools(model, plan))]


WORKSPACE = Memory("workspace", 0, "", None)


def run_overlaps(model: Model, plan: MemoryPlan) -> list[Subject]:
    """Return the comparisons of run, in the order in which both back ends and the runtime make them."""
    if not model.checks.buffers:
        return []
    own = (*pool_memory(model, plan), WORKSPACE)
    tensors = tensor_memory(model)
    inputs = [tensor for tensor in tensors if tensor.role == "input"]
    outputs = [tensor for tensor in tensors if tensor.role == "output"]
    return [
        *(Subject(tensor, own) for tensor in inputs),
        *(Subject(output, (*inputs, *outputs[: output.index], *own)) for output in outputs),
    ]


def open_overlaps(model: Model, plan: MemoryPlan) -> list[Subject]:
    """Return the comparisons of open: the pools with each other and with the workspace."""
    if not model.checks.buffers:
        return []
    pools = pool_memory(model, plan)
    return [Subject(pool, (*pools[: pool.index], WORKSPACE)) for pool in pools]


def is_inline(subjects: list[Subject]) -> bool:
    """Return whether the comparisons are in the code of the model, not a call of the runtime with a table."""
    return sum(len(subject.others) for subject in subjects) <= INLINE


def table(tensors: list[Memory], pools: list[Memory]) -> list[int]:
    """Return the numbers of opwest_buffers_overlap() after the size of the workspace."""
    inputs = sum(tensor.role == "input" for tensor in tensors)
    sizes = [memory.size or 0 for memory in (*tensors, *pools)]
    return [inputs, len(tensors) - inputs, len(pools), *sizes]
