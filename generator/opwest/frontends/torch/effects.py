# SPDX-License-Identifier: Apache-2.0
"""Tensors by name, with operators that change a tensor in place made functional.

Exported programs that are not decomposed contain such operators, on views as well: `cache[:, 1:].copy_(x)`. A name is
then a view of a storage; a change replaces the content of the storage, and views that are read later are made again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.spec import CUSTOM_HINT
from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import TRANSLATIONS, Builder, Context, Value
from opwest.frontends.torch.program import Call, Ref

_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        *("view", "unsqueeze", "squeeze", "permute", "transpose", "t", "numpy_T", "movedim", "alias", "detach"),
        *("slice", "select", "narrow", "expand", "view_as", "unflatten", "lift_fresh", "swapaxes", "mT"),
        *("diagonal", "unfold", "moveaxis", "adjoint", "broadcast_to", "swapdims", "lift"),
        *("dropout", "alpha_dropout", "feature_dropout"),
    )
)
"""The results share their elements with the first argument."""
_PARTS = frozenset(("aten.split", "aten.chunk", "aten.unbind", "aten.split_with_sizes", "aten.tensor_split"))
"""Each result is a view."""
_COPIES_OR_VIEWS = frozenset(
    f"aten.{name}"
    for name in ("reshape", "contiguous", "flatten", "to", "_to_copy", "expand_as", "ravel", "reshape_as", "type_as")
)
"""The layout of the data decides whether the result is a view."""


_SHARING = _VIEWS | _PARTS | _COPIES_OR_VIEWS
_HINT = "export with run_decompositions(): torch.export.save(program.run_decompositions(), path)"


class LostError(Unsupported):
    """A tensor is unknown: the reason is that of an operator before."""


@dataclass(eq=False)
class _Storage:
    """A content that can change."""

    value: Value
    version: int = 0
    is_unknown: bool = False
    """Whether a tensor was changed that can be a copy or a view of it."""


@dataclass(frozen=True, eq=False)
class _Step:
    """A view of another name."""

    call: Call
    place: int
    """The number of the result."""


@dataclass(eq=False)
class _Slot:
    """What a name is: a chain of views of a storage."""

    storage: _Storage
    steps: tuple[_Step, ...]
    value: Value
    version: int
    is_certain: bool = True
    """Whether it is known that the elements are those of the storage."""


class Environment:
    """The tensors of a program."""

    def __init__(self, metas: Mapping[str, Any], build: Builder) -> None:
        self._metas = metas
        self._build = build
        self._slots: dict[str, _Slot] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._slots

    def bind(self, name: str, value: Value) -> None:
        """Let a name be a new tensor."""
        storage = _Storage(value)
        self._slots[name] = _Slot(storage, (), value, 0)

    def bind_results(self, call: Call, values: Mapping[str, Value]) -> None:
        """Let the results of a call be new tensors, or views of its first argument."""
        first = next((argument for argument in call.arguments.values() if isinstance(argument, Ref)), None)
        source = None if first is None else self._slots.get(first.name)
        is_view, is_open = call.operator in _VIEWS or call.operator in _PARTS, call.operator in _COPIES_OR_VIEWS
        for place, name in enumerate(call.results):
            if name is None or name not in values:
                continue
            self.bind(name, values[name])
            if source is not None and (is_view or is_open):
                steps = (*source.steps, _Step(call, place))
                is_certain = source.is_certain and not is_open
                self._slots[name] = _Slot(source.storage, steps, values[name], source.storage.version, is_certain)

    def read(self, name: str) -> Value:
        """Return the present content. Raises Unsupported."""
        slot = self._slots.get(name)
        if slot is None:
            raise LostError(f"'{name}' is the result of an unsupported operator")
        if slot.storage.is_unknown or (slot.version != slot.storage.version and not slot.is_certain):
            raise _uncertain(name)
        if slot.version != slot.storage.version:
            slot.value = self._along(slot)[-1]
            slot.version = slot.storage.version
        return slot.value

    def _along(self, slot: _Slot) -> list[Value]:
        """Return the contents along the chain of views."""
        values = [slot.storage.value]
        for step in slot.steps:
            values.append(self._viewed(step, values[-1]))
        return values

    def _viewed(self, step: _Step, data: Value) -> Value:
        """Return the view of other data."""
        call = step.call
        first = next(argument for argument in call.arguments.values() if isinstance(argument, Ref))

        def read(name: str) -> Value:
            return data if name == first.name else self.read(name)

        results = translation_of(call)(Context(call, self._metas, read, self._build), self._build)
        value = results if isinstance(results, Value) else list(results)[step.place]
        assert value is not None
        return value

    def change(self, name: str, value: Value) -> None:
        """Replace the content of a tensor, and with it that of all views of its elements. Raises Unsupported."""
        slot = self._slots.get(name)
        if slot is None:
            raise LostError(f"'{name}' is the result of an unsupported operator")
        if not slot.is_certain:  # a copy, unless something reads the other tensor
            slot.storage.is_unknown = True
            self.bind(name, value)
            return
        values = self._along(slot)[:-1]
        for step, before in zip(reversed(slot.steps), reversed(values), strict=True):
            value = self._inserted(step, before, value)
        slot.storage.value = value
        slot.storage.version += 1

    def _inserted(self, step: _Step, before: Value, part: Value) -> Value:
        """Return the data of a view with the elements of the view replaced. Raises Unsupported."""
        index = self._build.constant(np.arange(before.size).reshape(before.shape))
        places = self._viewed(step, index).content
        if places is None or len(np.unique(places)) != places.size:
            raise Unsupported(
                f"a change in place of the result of {step.call.shown}", "operators that are not in place", _HINT
            )
        return scattered(before, places, part, self._build)

    def alias(self, name: str, other: str) -> None:
        """Let a name be the same tensor as another one."""
        self._slots[name] = self._slots[other]


def _uncertain(name: str) -> Unsupported:
    return Unsupported(
        f"'{name}' can be a copy or a view of a tensor that is changed in place",
        "operators that are not in place",
        _HINT,
    )


def translation_of(call: Call) -> Any:
    """Return the translation of a call. Raises Unsupported."""
    function = TRANSLATIONS.get(call.target) or TRANSLATIONS.get(call.operator)
    if function is None:
        raise Unsupported("unsupported operator", hint=CUSTOM_HINT)
    return function


def scattered(before: Value, places: Any, part: Value, build: Builder) -> Value:
    """Return data with elements replaced: `places` are their numbers in the flattened data."""
    if not places.size:
        return before
    if places.size == before.size and (places.reshape(-1) == np.arange(before.size)).all():
        return build.reshape(part, before.shape)
    if joined := _joined(before, places, part, build):
        return joined
    where = np.arange(before.size)
    where[places.reshape(-1)] = before.size + np.arange(places.size)
    both = [build.reshape(value, (value.size,)) for value in (before, part)]
    mixed = build.op("Gather", [build.concat(both, 0), build.constant(where)], (before.size,), axis=0)
    return build.reshape(mixed, before.shape)


def _joined(before: Value, places: Any, part: Value, build: Builder) -> Value | None:
    """Return the parts around a range of one dimension, joined with it; None for other places."""
    low, high = int(places.min()), int(places.max())
    start, end = ([int(n) for n in np.unravel_index(place, before.shape)] for place in (low, high))
    axes = [axis for axis, n in enumerate(before.shape) if (start[axis], end[axis]) != (0, n - 1)]
    if len(axes) != 1:
        return None
    [axis] = axes
    first, stop = start[axis], end[axis] + 1
    shape = [*before.shape[:axis], stop - first, *before.shape[axis + 1 :]]
    grid = np.arange(before.size).reshape(before.shape).take(range(first, stop), axis)
    if places.size != grid.size or (places.reshape(-1) != grid.reshape(-1)).any():
        return None
    parts = [build.slice(before, axis, 0, first), build.reshape(part, shape)]
    return build.concat([*parts, build.slice(before, axis, stop, before.shape[axis])], axis)


def in_place(call: Call) -> str | None:
    """Return the tensor that a call changes; None for other calls."""
    name = call.operator.partition(".")[2]
    is_changing = name.endswith("_") and not name.endswith("__")
    first = _first(call)
    return first if is_changing else None


def _first(call: Call) -> str | None:
    return next((argument.name for argument in call.arguments.values() if isinstance(argument, Ref)), None)


def changed_roots(calls: Iterable[Call]) -> set[str]:
    """Return the tensors that calls change in place, directly or by a view."""
    makers: dict[str, Call] = {}
    changed = set()
    for call in calls:
        name = in_place(call)
        while name is not None:
            changed.add(name)
            maker = makers.get(name)
            is_part = maker is not None and (maker.operator in _SHARING or in_place(maker) is not None)
            name = _first(maker) if maker is not None and is_part else None
        makers.update((result, call) for result in call.results if result is not None)
    return changed


def functional(call: Call) -> Call:
    """Return a call with the operator that is not in place."""
    if in_place(call) is None:
        return call
    namespace, name, *overload = call.target.split(".")
    return dataclasses.replace(call, target=".".join((namespace, name.removesuffix("_"), *overload)))
