# SPDX-License-Identifier: Apache-2.0
"""The buffers in the workspace: intermediates, scratch memory, and inputs, outputs and constants placed there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from opwest.base.diagnostics import Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.model.inputs.context import Context
from opwest.model.readers.dataflow import Flow
from opwest.model.readers.steps import Names
from opwest.model.types.dtypes import TensorType
from opwest.model.types.model import (
    DEFAULT_ALIGNMENT,
    Binding,
    Buffer,
    BufferRole,
    Constant,
    Interface,
    State,
    Step,
    View,
)


@dataclass(frozen=True)
class Workspace:
    """The buffers, and the steps, inputs and outputs that refer to them."""

    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    inputs: tuple[Interface, ...]
    outputs: tuple[Interface, ...]
    states: tuple[State, ...]


class Placing:
    """Makes the buffers of a model; reports tensors without a pool."""

    def __init__(self, context: Context, names: Names, flow: Flow) -> None:
        self.context = context
        self.faults = context.faults
        self.names = names
        self.flow = flow
        self.buffers: list[Buffer] = []
        self.placed: set[str] = set()
        interfaces = (*names.inputs, *names.outputs)
        self.arenas = {names.views[name].root for name in interfaces if name in names.views}
        """The tensors that inputs and outputs are views of."""
        self.line = max((p.cache_line or 1 for p in names.pools.values()), default=1)

    def place(self) -> Workspace:
        """Return the content of the workspace."""
        declared = self.context.section("tensors", self.context.run)
        for tensor in self.flow.intermediates:
            entry = declared.get(tensor.name, {})
            pool = entry.get("pool")
            at = declared[tensor.name].value_location("pool") if pool else tensor.location
            agents = self.flow.agents.get(tensor.name, {"cpu"})
            if tensor.name in self.arenas:  # the caller writes inputs, and reads outputs
                agents = agents | {"cpu"}
            self._add("intermediate", tensor.name, tensor.type, tensor.align, agents, pool, at)
        for scratch in self.flow.scratch:
            argument = scratch.argument
            # The processor writes the memory that opwest adds to a call, whichever device reads it.
            agents = {scratch.device or "cpu"} | ({"cpu"} if argument.supplied else set())
            self._add("scratch", scratch.name, argument.type, argument.align, agents, None, scratch.location)
        inputs = self._interfaces("input", self.names.inputs.values())
        outputs = self._interfaces("output", self.names.outputs.values())
        for constant in self.names.constants.values():
            self._constant(constant)
        for state in self.flow.states:
            self._state(state)
        steps = tuple(replace(s, bindings=tuple(_bound(b, self.placed) for b in s.bindings)) for s in self.flow.steps)
        states = (replace(s, next=_bound(s.next, self.placed)) if s.next else s for s in self.flow.states)
        return Workspace(tuple(self.buffers), steps, inputs, outputs, tuple(states))

    def _add(
        self,
        role: BufferRole,
        name: str,
        type_: TensorType,
        align: int,
        agents: set[str],
        pool: str | None,
        at: Location,
    ) -> None:
        hint = "with external: true the caller provides the memory" if role in ("input", "output") else None
        pools = self._pools(agents, pool, name, at, hint)
        if pools and name not in self.placed:  # otherwise it has two roles, which was reported
            self.placed.add(name)
            align = max(align, DEFAULT_ALIGNMENT)
            self.buffers.append(Buffer(name, role, type_, align, pools, self._incoherent(agents)))

    def _pools(
        self, agents: set[str], requested: str | None, tensor: str, at: Location, hint: str | None
    ) -> tuple[str, ...]:
        """Return the pool `requested`, else all that `agents` (devices and "cpu") can reach, in order of preference.

        Report an error, with `hint`, if there is none.
        """
        pools = self.names.pools
        if requested is None:
            reached = tuple(pool.name for pool in pools.values() if agents <= (pool.reachable_by or agents))
            if not reached:
                self.faults.error(
                    f"no pool is reachable by all users of tensor {tensor!r}: {', '.join(sorted(agents))}",
                    at,
                    expected="a pool with all of them in reachable_by",
                    hint=hint,
                )
            return reached
        if requested not in pools:
            self.faults.error(f"undefined pool {requested!r}", at, hint=nearest(requested, pools))
            return ()
        missing = agents - (pools[requested].reachable_by or agents)
        if missing:
            self.faults.error(
                f"pool {requested!r} of tensor {tensor!r} is not reachable by {', '.join(sorted(missing))}",
                at,
                expected=f"a pool reachable by {', '.join(sorted(agents))}",
            )
            return ()
        return (requested,)

    def _incoherent(self, agents: set[str]) -> bool:
        return any(not d.coherent for d in self.names.devices.values() if d.name in agents)

    def _interfaces(self, role: BufferRole, tensors: Iterable[Interface]) -> tuple[Interface, ...]:
        """Return inputs or outputs with their agents; those that devices access get a buffer."""
        interfaces = []
        for tensor in tensors:
            agents = self.flow.agents.get(self.names.root(tensor.name), set())
            entry = self.context.section(f"{role}s", self.context.run)[tensor.name]
            align = max(tensor.align, self.flow.alignments.get(tensor.name, 1))
            is_used_by_device = tensor.external is None and agents - {"cpu"}
            placed = bool(tensor.pool is not None or tensor.external is False or is_used_by_device)
            if tensor.external and tensor.pool is not None:
                self.faults.error(
                    f"external {role} {tensor.name!r} has a pool",
                    entry.value_location("pool"),
                    expected="one of 'external' and 'pool'",
                    hint="the workspace contains the pools, the caller provides external memory",
                )
                placed = False
            view = self.names.views.get(tensor.name)
            if view is not None:
                placed = True
                self._inside(role, tensor, align, view)
            elif placed:
                at = entry.value_location("pool") if tensor.pool else tensor.location
                self._add(role, tensor.name, tensor.type, align, agents | {"cpu"}, tensor.pool, at)
            elif self._incoherent(agents):
                align = max(align, self.line)
            interfaces.append(replace(tensor, align=align, placed=placed, agents=frozenset(agents)))
        return tuple(interfaces)

    def _inside(self, role: BufferRole, tensor: Interface, align: int, view: View) -> None:
        """Add the buffer of an input or output that is a view of an arena; without the arena, a fault is reported."""
        arena = next((buffer for buffer in self.buffers if buffer.name == view.root), None)
        if arena is not None and tensor.name not in self.placed:
            self.placed.add(tensor.name)
            inside = (view.root, view.offset)
            self.buffers.append(Buffer(tensor.name, role, tensor.type, align, arena.pools, arena.incoherent, inside))

    def _constant(self, constant: Constant) -> None:
        agents = self.flow.agents.get(constant.name, set())
        if constant.pool is not None:
            align = max(constant.align, self.flow.alignments.get(constant.name, 1))
            at = self.context.section("constants")[constant.name].value_location("pool")
            self._add("constant", constant.name, constant.type, align, agents | {"cpu"}, constant.pool, at)
            return
        for name in sorted(agents - {"cpu"}):
            if not self.names.devices[name].reads_flash:
                self.faults.error(
                    f"device {name!r} reads constant {constant.name!r}, but cannot read flash",
                    constant.location,
                    expected="pool: a pool that the device can reach",
                    hint="add a pool: opening the model copies the constant to it",
                )

    def _state(self, state: State) -> None:
        align = max(state.align, self.flow.alignments.get(state.name, 1))
        section = self.context.section("state", self.context.run)
        at = section[state.name].value_location("pool") if state.pool else state.location
        agents = self.flow.agents.get(state.name, set()) | {"cpu"}  # which writes the initial content
        self._add("state", state.name, state.type, align, agents, state.pool, at)


def _bound(binding: Binding, placed: set[str]) -> Binding:
    if binding.role in ("input", "output", "constant") and binding.name in placed:
        return replace(binding, role="buffer")
    return binding
