# SPDX-License-Identifier: Apache-2.0
"""Resolve named declarations of a manifest: operators, externals, inputs and outputs, constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from opwest.base.diagnostics import Location, nearest
from opwest.base.result import counted
from opwest.manifest.located import Mapping
from opwest.model.checks.memory import check_passing, supplied_arguments, workspace_need
from opwest.model.checks.tables import check_order, check_table, read_nulls
from opwest.model.inputs.context import Context, located_items, size_in_bytes, tensor_info, tensor_type
from opwest.model.readers.constants import Shape, constant_shapes
from opwest.model.readers.programs import Programs, check_device_keys, operator_program, takes_launch
from opwest.model.types.builds import External, permitted_effects
from opwest.model.types.c_names import check_name, is_symbol
from opwest.model.types.conventions import UNPACKED, Convention, Result, convention_of
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.model.types.model import Argument, Interface, Operator
from opwest.model.types.passing import Nulls
from opwest.model.types.sections import STRUCT_DEVICE, STRUCT_LAUNCH


def operators(context: Context, programs: Programs) -> dict[str, Operator]:
    """Return the operators by name."""
    resolved = {}
    shapes = constant_shapes(context)
    for name, entry in context.section("operators").items():
        at = context.section("operators").key_location(name)
        check_name("operator", name, at, context.faults)
        resolved[name] = _operator(context, programs, name, entry, at, shapes)
    _check_shared_symbols(context, resolved)
    return resolved


def _check_shared_symbols(context: Context, declared: dict[str, Operator]) -> None:
    """Report operators that share a symbol and declare different C prototypes."""
    first: dict[str, Operator] = {}
    for operator in declared.values():
        other = first.setdefault(operator.symbol, operator)
        if other is not operator and other.prototype != operator.prototype:
            context.faults.error(
                f"conflicting prototypes for symbol {operator.symbol!r} "
                f"in operators {other.name!r} and {operator.name!r}",
                operator.location,
                expected=other.prototype,
                hint=f"operator {operator.name!r} declares {operator.prototype}",
            )


def _operator(
    context: Context,
    programs: Programs,
    name: str,
    entry: Mapping,
    at: Location,
    shapes: dict[tuple[str, str], Shape],
) -> Operator:
    symbol = entry.get("symbol", name)
    if not is_symbol(symbol) and "symbol" in entry:
        context.faults.error(
            f"symbol {symbol!r} cannot be called from C",
            entry.value_location("symbol"),
            expected="a C identifier",
            hint="add a C function that calls it",
        )
    convention = convention_of(entry.get("convention", context.manifest.get("convention", UNPACKED.name)))
    check_device_keys(context, name, entry, convention)
    device = context.section("device", entry)
    has_launch = takes_launch(context, name, device, convention)
    program = operator_program(context, programs, name, entry)
    takes_device, is_async = "device" in entry, entry.get("async", False)
    args: list[Argument] = []
    nulls: list[Nulls] = []
    names: dict[str, Location] = {}
    items = located_items(entry["args"])
    for item, place in items:
        argument: Argument | Nulls
        if "nulls" in item:
            argument = read_nulls(context, item, convention, len(args))
            nulls.append(argument)
        else:
            argument = _argument(context, item, place, convention, shapes.get((name, item["name"])))
            args.append(argument)
        if argument.name in names:
            _report_duplicate(context, name, argument, names[argument.name])
        names[argument.name] = argument.location
    for argument, item in zip(args, [item for item, _ in items if "nulls" not in item], strict=True):
        _check_in_place(context, argument, item, args)
    _check_phases(context, entry, args)
    check_order(context, items)
    workspace = workspace_need(context, name, entry, convention)
    result = _result(context, name, entry, convention, has_workspace=workspace is not None)
    if isinstance(result, Argument):
        check_name("argument", result.name, result.location, context.faults)
        if result.name in names:
            _report_duplicate(context, name, result, names[result.name])
        args.append(result)
    args += supplied_arguments(convention, args, takes_device, is_async, workspace, at)
    return Operator(
        name=name,
        symbol=symbol,
        description=entry.get("description"),
        args=tuple(args),
        convention=convention,
        workspace=workspace,
        returns_status=result == "status",
        takes_device=takes_device,
        device_type=device.get("type"),
        device_program=device.get("program"),
        handle=STRUCT_LAUNCH if has_launch else device.get("handle", STRUCT_DEVICE),
        is_async=is_async,
        stateful=entry.get("stateful", False),
        uses=tuple(e for e in permitted_effects(entry) if e != "state"),
        location=at,
        check=entry.get("check"),
        takes_launch=has_launch,
        program=program,
        cycles=entry.get("cycles"),
        launch_cycles=entry.get("launch_cycles", 0),
        stack=size_in_bytes(entry["stack"]) if "stack" in entry else None,
        stack_location=entry.value_location("stack") if "stack" in entry else None,
        nulls=tuple(nulls),
    )


def _result(
    context: Context, name: str, entry: Mapping, convention: Convention, *, has_workspace: bool
) -> Literal["status", "void"] | Argument:
    """Return what an operator returns, the tensor for a value; report what the convention does not permit."""
    given = entry.get("returns", convention.results[0])
    kind: Result = "value" if isinstance(given, Mapping) else given
    permitted = ("status",) if has_workspace else convention.results
    if kind not in permitted:
        why = "has a workspace" if has_workspace and kind in convention.results else f"is {convention.name}"
        context.faults.error(
            f"operator {name!r} {why} and returns {'a value' if kind == 'value' else kind}",
            entry.value_location("returns") if "returns" in entry else entry.value_location("workspace"),
            expected="returns: status",
            hint="a call can run out of workspace: return a status" if has_workspace else None,
        )
        kind = kind if kind in convention.results else "status"
    if not isinstance(given, Mapping):
        return "void" if kind == "void" else "status"
    type_ = TensorType(DTYPES[given["dtype"]], tuple(given.get("shape", (1,))))
    at = given.value_location("name") if "name" in given else entry.key_location("returns")
    return Argument(
        name=given.get("name", "result"),
        type=type_,
        direction="out",
        scalar=False,
        align=type_.dtype.size,
        info=tensor_info(context, given, type_),
        location=at,
        is_result=True,
    )


def _report_duplicate(context: Context, operator: str, argument: Argument | Nulls, first: Location) -> None:
    what = f"argument {argument.name!r} in operator {operator!r}"
    context.duplicate(what, argument.location, first, "unique argument names")


def _argument(
    context: Context, entry: Mapping, place: Location, convention: Convention, shape: Shape | None
) -> Argument:
    faults = context.faults
    at = entry.value_location("name")
    check_name("argument", entry["name"], at, faults)
    scalar = entry.get("scalar", False)
    direction = entry.get("direction", "in")
    if scalar:
        type_ = TensorType(DTYPES[entry["dtype"]], ())
        if entry.get("shape"):
            faults.error(
                "a scalar cannot have a shape", entry.value_location("shape"), expected="scalar: true, or a shape"
            )
        if direction != "in":
            faults.error(
                f"a scalar is passed by value and cannot have direction {direction!r}",
                entry.value_location("direction"),
                expected="in",
            )
            direction = "in"  # reported once
    elif shape is not None:
        type_ = TensorType(DTYPES[entry["dtype"]], shape)
    else:
        if "shape" not in entry:
            context.untyped.add(at)
            faults.error(
                f"argument {entry['name']!r} has no shape",
                place,
                expected="shape: [...]",
                hint="an argument passed by value has scalar: true; a constant in a .npy or .npz file has its shape",
            )
        type_ = tensor_type(context, entry)
    check_passing(context, entry, convention)
    check_table(context, entry, convention)
    align = entry.get("align", 1 if scalar else convention.tensor_alignment)
    return Argument(
        name=entry["name"],
        type=type_,
        direction=direction,
        scalar=scalar,
        align=max(align, type_.dtype.size),
        info=tensor_info(context, entry, type_),
        location=at,
        pointer=entry.get("pointer", False),
        in_place=tuple(context.items("in_place", entry)) if "in_place" in entry else (),
        phases=_phases(context, entry),
        struct=entry.get("struct"),
        table=entry.get("table"),
    )


def _phases(context: Context, entry: Mapping) -> tuple[int, int] | None:
    """Return the phases of an argument."""
    if "phases" not in entry:
        return None
    first, last = entry["phases"]
    if first > last or entry.get("scalar", False):
        found = "a scalar has phases" if first <= last else f"the phases of {entry['name']!r} are {first} to {last}"
        expected = "a tensor" if first <= last else "phases: [FIRST, LAST], the first one not after the last one"
        context.faults.error(found, entry.value_location("phases"), expected=expected)
        return None
    return first, last


def _check_phases(context: Context, entry: Mapping, args: Sequence[Argument]) -> None:
    """Report phases of an operator whose memory a device accesses after the call."""
    if entry.get("async", False) and any(argument.phases for argument in args):
        context.faults.error(
            "'phases' in an operator with async: true",
            entry.value_location("async"),
            expected="arguments without phases",
            hint="a device accesses the memory until 'run' has waited for it",
        )


def _check_in_place(context: Context, argument: Argument, entry: Mapping, args: list[Argument]) -> None:
    """Report arguments whose memory the result cannot reuse."""
    if "in_place" not in entry:
        return
    if argument.in_place and argument.direction != "out":
        context.faults.error(
            f"'in_place' at argument {argument.name!r} with direction {argument.direction!r}",
            entry.value_location("in_place"),
            expected="'in_place' at an argument with direction: out",
            hint="for an argument that is both read and written, use direction: inout",
        )
        return
    known = {a.name: a for a in args if a.direction == "in" and not a.scalar}
    for name, at in located_items(context.items("in_place", entry)):
        other = known.get(name)
        if other is None:
            context.faults.error(
                f"{argument.name!r} cannot reuse the memory of {name!r}",
                at,
                expected="an argument of this operator with direction: in",
                hint=nearest(name, known),
            )
        elif other.type.size < argument.type.size and not {argument.location, other.location} & context.untyped:
            context.faults.error(
                f"{argument.name!r} ({counted(argument.type.size, 'byte')}) does not fit in the memory of {name!r} "
                f"({counted(other.type.size, 'byte')})",
                at,
                expected="an argument at least as large",
            )


def externals(context: Context) -> dict[str, External]:
    """Return the declared external symbols by name."""
    symbols: dict[str, External] = {}
    for entry, place in located_items(context.items("externals")):
        symbol = entry["symbol"]
        if symbol in symbols:
            at = entry.value_location("symbol")
            context.duplicate(f"external {symbol!r}", at, symbols[symbol].location, "each symbol once")
        given = entry.get("kconfig", [])
        options = (given,) if isinstance(given, str) else tuple(given)
        symbols[symbol] = External(symbol, entry["from"], options, place)
    return symbols


def interface(context: Context, key: str) -> dict[str, Interface]:
    """Return the inputs or the outputs by name."""
    section = context.section(key, context.run)
    interfaces = {}
    for name, entry in section.items():
        at = section.key_location(name)
        check_name(key.removesuffix("s"), name, at, context.faults)
        type_ = tensor_type(context, entry)
        interfaces[name] = Interface(
            name=name,
            type=type_,
            align=max(entry.get("align", 1), type_.dtype.size),
            info=tensor_info(context, entry, type_),
            description=entry.get("description"),
            external=entry.get("external"),
            pool=entry.get("pool"),
            location=at,
            labels=_labels(context, key, name, entry, type_),
        )
    return interfaces


def _labels(context: Context, key: str, name: str, entry: Mapping, type_: TensorType) -> tuple[str, ...]:
    """Return the names of the classes of an output; report an input, and elements that select no class."""
    labels = tuple(context.items("labels", entry))
    at = entry.key_location("labels")
    if labels and key == "inputs":
        context.faults.error(f"input {name!r} has 'labels'", at, expected="'labels' at an output")
    elif labels and type_.dtype.kind == "float" and type_.shape[-1:] != (len(labels),):
        context.faults.error(
            f"output {name!r} has {counted(len(labels), 'label')}, and no dimension of "
            f"{counted(len(labels), 'score')}: {type_}",
            at,
            expected="one label per element of the last dimension, or an output of class numbers",
        )
    return labels
