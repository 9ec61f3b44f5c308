# SPDX-License-Identifier: Apache-2.0
"""Compute the maximum stack of `run` per target, from frame sizes and the call graph of the objects.

The margin in the configuration, not this figure, covers main(), the thread entry, printing, logging and
exception frames. With an unknown frame or call the figure is a lower bound and lists it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.builds import ANY_TARGET, Examined, StackNeed, TargetBuild
from opwest.model.types.model import Model, Operator
from opwest.objects.calls import CallSite, Function, UndecodedError, functions
from opwest.objects.facts import Member, ObjectError
from opwest.objects.stack import UNKNOWN, StackUse, stack_usage

_Node = tuple[int, CallSite]
_FRAME_WORDS, _FRAME_PER_ARGUMENT = 24, 8
"""Words of the frame of run: kept pointers, saved registers, arguments passed in memory. At least as large as with
any compiler in the tests."""
_SHOWN = 4


_DECLARED = "stack"
"""The key of operators, as a source."""


def stack_needs(model: Model, examined: Sequence[Examined], faults: Diagnostics) -> tuple[StackNeed, ...]:
    """Return the need of run for every target with objects; of sources only, if all operators declare their stack.

    Reports operators that declare less than their objects need.
    """
    is_declared = all(step.operator.stack is not None for step in model.steps)
    builds = (build for build in model.builds if build.target or is_declared)
    return tuple(_Target(model, build, examined).need(faults) for build in builds)


@dataclass
class _Depth:
    """The stack of a function with its callees, in bytes, and the missing parts."""

    bytes: int
    missing: frozenset[str]


class _Target:
    """The functions of all objects that are linked for one target."""

    def __init__(self, model: Model, build: TargetBuild, examined: Sequence[Examined]) -> None:
        self.model = model
        self.build = build
        self.target = build.target.name if build.target else ANY_TARGET
        self.nodes: dict[_Node, Function] = {}
        self.frames: dict[_Node, StackUse] = {}
        self.symbols: dict[str, _Node] = {}
        self.depths: dict[_Node, _Depth] = {}
        self.sources: set[str] = set()
        self.undecoded: dict[str, str] = {}
        """The reason by symbol."""
        own = (object_ for object_ in examined if object_.target == self.target and object_.linked)
        for index, object_ in enumerate(own):
            if object_.member is not None:
                self._add(index, object_, object_.member)

    def _add(self, index: int, object_: Examined, member: Member) -> None:
        try:
            frames = stack_usage(member, object_.stack_files)
            decoded = functions(member) if any(use.known for use in frames.values()) else []
        except ObjectError:
            return
        except UndecodedError as reason:
            self.undecoded.update(dict.fromkeys(member.defined, str(reason)))
            decoded = []
        for function in decoded:
            node = index, function.place
            self.nodes[node] = function
            self.frames[node] = frames.get(function.name, UNKNOWN)
            if not function.local:
                self.symbols.setdefault(function.name, node)

    def need(self, faults: Diagnostics) -> StackNeed:
        """Return the figure for run."""
        most = _Depth(0, frozenset())
        deepest = None
        missing: set[str] = set()
        for operator in {step.operator.name: step.operator for step in self.model.steps}.values():
            depth = self._declared(operator, self._symbol(operator.symbol, is_operator=True), faults)
            missing |= depth.missing
            if depth.bytes > most.bytes:
                most, deepest = depth, operator.name
        if any(device.has_hooks for device in self.model.devices):
            missing.add("the drivers of devices")
        arguments = max((len(step.operator.args) + 1 for step in self.model.steps), default=0)
        pointer = self.build.target.bits // 8 if self.build.target else 8
        own = _FRAME_WORDS * pointer + _FRAME_PER_ARGUMENT * arguments
        return StackNeed(self.target, own + most.bytes, deepest, tuple(sorted(missing)), tuple(sorted(self.sources)))

    def _declared(self, operator: Operator, depth: _Depth, faults: Diagnostics) -> _Depth:
        """Return the need of an operator, the declared one if the objects lack a part of it."""
        if operator.stack is None:
            return depth
        if depth.bytes > operator.stack:
            faults.error(
                f"operator '{operator.name}' needs {'at least ' if depth.missing else ''}{depth.bytes} bytes of stack "
                f"for target '{self.target}', 'stack' is {operator.stack}",
                operator.stack_location,
                expected=f"stack: {depth.bytes} or more",
            )
        if not depth.missing:
            return depth
        self.sources.add(_DECLARED)
        return _Depth(operator.stack, frozenset())

    def _symbol(self, name: str, *, is_operator: bool = False) -> _Depth:
        node = self.symbols.get(name)
        if node is None:
            why = f"calls ({self.undecoded[name]}) of" if name in self.undecoded else "the frame of"
            return _Depth(0, frozenset([f"{why} {name}" if is_operator or name in self.undecoded else name]))
        return self._node(node)

    def _node(self, root: _Node) -> _Depth:
        """Return the need of a function. Iterative: call chains can exceed Python's recursion limit."""
        path: set[_Node] = set()
        waiting: list[tuple[_Node, bool]] = [(root, False)]
        while waiting:
            node, is_done = waiting.pop()
            if is_done:
                path.remove(node)
                self.depths[node] = self._sum(node, path)
            elif node not in self.depths and node not in path:
                path.add(node)
                waiting.append((node, True))
                callees = (self._callee(node, callee) for callee in self.nodes[node].callees)
                waiting += [(callee, False) for callee in callees if callee is not None]
        return self.depths[root]

    def _callee(self, caller: _Node, callee: str | CallSite) -> _Node | None:
        """Return a called function; None for a symbol that no object defines."""
        return self.symbols.get(callee) if isinstance(callee, str) else (caller[0], callee)

    def _sum(self, node: _Node, above: set[_Node]) -> _Depth:
        """Return a function's frame plus the largest need of its callees, all computed before."""
        function, frame = self.nodes[node], self.frames[node]
        missing: set[str] = set()
        if not frame.known:
            missing.add(f"the frame of {function.name}")
        elif frame.source is not None:
            self.sources.add(frame.source)
        if function.indirect:
            missing.add(f"indirect calls of {function.name}")
        deepest = 0
        for callee in function.callees:
            other = self._callee(node, callee)
            if other is None:
                missing.add(str(callee))
            elif other == node or other in above or other not in self.depths:
                missing.add(f"the recursion depth of {function.name}")
            else:
                deepest = max(deepest, self.depths[other].bytes)
                missing |= self.depths[other].missing
        return _Depth((frame.bytes or 0) + deepest, frozenset(missing))


def stack_text(need: StackNeed) -> str:
    """Return a figure and its sources as text."""
    where = f" (largest: {need.operator})" if need.operator else ""
    if need.known:
        frames = ", ".join(source for source in need.sources if source != _DECLARED)
        origins = [f"{frames} and the calls"] if frames else []
        origins += ["the operators' 'stack'"] if _DECLARED in need.sources else []
        return f"{need.target}: at most {need.bytes} bytes{where}, from {', '.join(origins)}"
    listed = ", ".join(need.missing[:_SHOWN]) + (", …" if len(need.missing) > _SHOWN else "")
    return f"{need.target}: at least {need.bytes} bytes{where}; unknown: {listed}; give 'stack' of operators"


def needs_json(needs: Sequence[StackNeed]) -> list[Mapping[str, object]]:
    """Return the figures as plain JSON values."""
    return [
        {
            "target": need.target,
            "bytes": need.bytes,
            "known": need.known,
            "operator": need.operator,
            "unknown": list(need.missing),
            "sources": list(need.sources),
        }
        for need in needs
    ]
