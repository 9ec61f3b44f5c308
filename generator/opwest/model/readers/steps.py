# SPDX-License-Identifier: Apache-2.0
"""The steps of `run`, with every `repeat` replaced by the steps of all its turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from math import prod

from opwest.base.diagnostics import Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.manifest.located import Items, Mapping
from opwest.model.inputs.context import Context, located_items
from opwest.model.readers.programs import Programs
from opwest.model.types.c_names import check_name
from opwest.model.types.dtypes import TensorType
from opwest.model.types.model import Constant, Interface, Operator, Pool, State, View
from opwest.model.types.sections import Device

MAX_STEPS = 65534
"""The metadata numbers steps with 16 bits; the last two numbers have another meaning."""


def listed_steps(context: Context) -> list[tuple[Mapping, Location]]:
    """Return all steps with their locations in the order of the run; of too many, those of the first turns."""
    turns = 1 if has_too_many_steps(context) else MAX_STEPS
    return list(islice(_expanded(context, turns), MAX_STEPS))


def has_too_many_steps(context: Context) -> bool:
    """Return whether there are more steps than the metadata can number."""
    return _step_count(context) > MAX_STEPS


def check_step_count(context: Context) -> None:
    """Report more steps than the metadata can number."""
    if has_too_many_steps(context):
        context.faults.error(
            f"'run.steps' has {counted(_step_count(context), 'step')} with all repetitions",
            context.run.value_location("steps"),
            expected=f"at most {MAX_STEPS}",
        )


def slice_name(tensor: str, turn: int) -> str:
    """Return the name of the part of a tensor in one turn. It is no identifier, so no other tensor has it."""
    return f"{tensor}[{turn}]"


def slice_names(context: Context) -> Iterator[tuple[str, str]]:
    """Yield the names of all parts that steps are repeated over, each with its tensor."""
    for entry in context.items("steps", context.run):
        for tensor in context.section("over", entry).values() if "repeat" in entry else ():
            yield from ((slice_name(tensor, turn), tensor) for turn in range(_turns(entry)))


def slices(context: Context, types: dict[str, TensorType], views: dict[str, View]) -> dict[str, View]:
    """Return the parts of the tensors that steps are repeated over; report tensors without a part for every turn.

    `types` contains all declared tensors.
    """
    parts: dict[str, View] = {}
    used = _used(context)
    for entry, _ in located_items(context.items("steps", context.run)):
        over = context.section("over", entry) if "repeat" in entry else Mapping(entry.file, entry.start)
        for name, tensor in over.items():
            at = over.value_location(name)
            check_name("tensor", name, over.key_location(name), context.faults)
            if name in types or name in views or name in used:
                context.faults.error(
                    f"{name!r} is the name of another tensor", over.key_location(name), expected="a new name"
                )
            view = views.get(tensor)
            whole = view.type if view else types.get(tensor)
            if whole is None:
                context.faults.error(
                    f"undefined tensor {tensor!r}",
                    at,
                    expected="an input, output, constant, state, view, or a tensor with dtype and shape in run.tensors",
                    hint=nearest(tensor, {*types, *views}),
                )
            elif whole.shape[:1] != (entry["repeat"],):
                context.faults.error(
                    f"the steps are repeated {entry['repeat']} times over {tensor!r}, which is {whole}",
                    at,
                    expected=f"a tensor whose first dimension is {entry['repeat']}",
                )
            else:
                parts |= _parts(tensor, whole, view)
    return parts


def _used(context: Context) -> set[str]:
    """Return the tensors of all steps, without the names of parts inside their own repetitions."""
    tensors: set[str] = set()
    for entry in context.items("steps", context.run):
        own = context.section("over", entry) if "repeat" in entry else {}
        inner = context.items("steps", entry) if "repeat" in entry else [entry]
        tensors |= {given for step in inner for given in step["args"] if isinstance(given, str) and given not in own}
    return tensors


def _parts(tensor: str, whole: TensorType, view: View | None) -> dict[str, View]:
    rank = len(whole.shape)
    # A single row has no pitch.
    part = TensorType(whole.dtype, whole.shape[1:], whole.pitch if rank > 2 else 0)
    size = whole.dtype.size * (prod(whole.shape[1:-1]) * whole.pitch if whole.pitch else prod(part.shape))
    root, start = (view.root, view.offset) if view else (tensor, 0)
    names = (slice_name(tensor, turn) for turn in range(whole.shape[0]))
    return {name: View(name, part, root, start + turn * size) for turn, name in enumerate(names)}


def _step_count(context: Context) -> int:
    entries = context.items("steps", context.run)
    return sum(_turns(entry) * len(entry.get("steps", [entry])) for entry in entries)


def _expanded(context: Context, turns: int) -> Iterator[tuple[Mapping, Location]]:
    """Yield the steps of at most `turns` turns of each repetition."""
    for entry, at in located_items(context.items("steps", context.run)):
        if "repeat" not in entry:
            yield entry, at
            continue
        over = context.section("over", entry)
        for turn in range(min(_turns(entry), turns)):
            for inner, place in located_items(context.items("steps", entry)):
                yield _of_turn(inner, over, turn), place


def _turns(entry: Mapping) -> int:
    return min(int(entry.get("repeat", 1)), MAX_STEPS + 1)


def _of_turn(entry: Mapping, over: Mapping, turn: int) -> Mapping:
    """Return a step with the parts of one turn as arguments."""
    step = entry.copied()
    given: Items = entry["args"]
    args = Items(given.file, given.start)
    args.items_at = given.items_at
    args += [slice_name(over[value], turn) if isinstance(value, str) and value in over else value for value in given]
    step["args"] = args
    return step


@dataclass
class Names:
    """The names that a step may use."""

    programs: Programs
    operators: dict[str, Operator]
    devices: dict[str, Device]
    pools: dict[str, Pool]
    inputs: dict[str, Interface]
    outputs: dict[str, Interface]
    constants: dict[str, Constant]
    declared_constants: Iterable[str]
    states: dict[str, State]
    views: dict[str, View]

    def root(self, name: str) -> str:
        """Return the tensor that contains a view; the name itself for any other tensor."""
        return self.views[name].root if name in self.views else name


def constant_types(context: Context, operators: dict[str, Operator]) -> dict[str, TensorType]:
    """Return for each constant the type that its first reader requires, for raw files without a type."""
    required: dict[str, TensorType] = {}
    declared = context.section("constants")
    for entry, _ in listed_steps(context):
        operator = operators.get(entry["call"])
        if operator is not None:
            for argument, given in zip(operator.step_args, entry["args"], strict=False):
                if isinstance(given, str) and given in declared:
                    required.setdefault(given, argument.type)
    return required


def check_roles(context: Context) -> set[str]:
    """Report and return names that are declared in two roles."""
    run = context.run
    twofold: set[str] = set()
    roles: dict[str, tuple[str, Location]] = {}
    for role, section in (
        ("input", context.section("inputs", run)),
        ("output", context.section("outputs", run)),
        ("constant", context.section("constants")),
        ("state", context.section("state", run)),
        ("intermediate tensor", context.section("tensors", run)),
    ):
        for name in section:
            at = section.key_location(name)
            if name in roles:
                other, first = roles[name]
                context.faults.error(
                    f"{name!r} is declared both as {role} and as {other}",
                    at,
                    expected="one declaration per name",
                    hint=f"first defined at line {first.line}",
                )
                twofold.add(name)
            else:
                roles[name] = (role, at)
    return twofold


def first_writers(context: Context, names: Names) -> dict[str, int]:
    """Return for every tensor the index of the first step that writes it or a part of it."""
    writers: dict[str, int] = {}
    for index, (entry, _) in enumerate(listed_steps(context)):
        operator = names.operators.get(entry["call"])
        if operator is not None and len(entry["args"]) == len(operator.step_args):
            for argument, given in zip(operator.step_args, entry["args"], strict=True):
                if argument.is_written and isinstance(given, str):
                    writers.setdefault(names.root(given), index)
    return writers


def named_by_unknown_operators(context: Context, names: Names) -> set[str]:
    """Return the tensors of steps with an undefined operator, whose directions are unknown."""
    return {
        names.root(given)
        for entry, _ in listed_steps(context)
        if entry["call"] not in names.operators
        for given in (*entry["args"], entry.get("device"))
        if isinstance(given, str)
    }
