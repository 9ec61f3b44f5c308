# SPDX-License-Identifier: Apache-2.0
"""Models of the ahead-of-time executor: main becomes one operator, with its workspaces and constants as arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opwest.importers.faults import fault
from opwest.importers.mlf.c_text import Function, Parameter, arrays
from opwest.importers.mlf.code import Code
from opwest.importers.mlf.draft import Argument, Constant, Draft, Operator, Step, WantedTensors
from opwest.importers.mlf.inner import Calls, Region
from opwest.importers.mlf.metadata import Metadata
from opwest.importers.mlf.packed import is_packed, packed_entries
from opwest.importers.mlf.ports import Seen, Sources, check_wanted, same_name, tensors
from opwest.importers.mlf.relay import Relay
from opwest.importers.mlf.workspace import ALIGN, Workspaces
from opwest.importers.mlf.wrapper import Given, Header, Pool, Role, Wrapper
from opwest.importers.text import free_name, identifier
from opwest.model.conventions import PACKED, UNPACKED, Convention
from opwest.model.dtypes import DTYPES

NAME = "whole_model"
"""The operator that main becomes."""

_MOST_NAMES = 50
_TYPES = {"input": "in", "output": "out"}


@dataclass(frozen=True)
class Model:
    """The parts of a folder that the import uses."""

    metadata: Metadata
    relay: Relay
    header: Header
    code: Code
    wanted: WantedTensors
    place: str


@dataclass(frozen=True)
class _Bound:
    """A parameter of main and its argument."""

    parameter: Parameter
    given: Given
    pointer: bool = False
    """Packed arguments: a bare pointer, no DLTensor."""


def draft(model: Model) -> Draft:
    """Return the model with main as its only step. Raises OpwestError."""
    code = model.code
    bound, convention = _bind(model), _convention(model)
    taken: set[str] = {NAME}
    sources = Sources(model.metadata, model.relay, model.wanted, model.place)
    inputs = tensors("input", _seen(model, bound, "input"), sources, taken)
    outputs = tensors("output", _seen(model, bound, "output"), sources, taken)
    check_wanted(model.wanted, [*(t.name for t in (*inputs, *outputs)), *(b.given.name for b in bound)], model.place)
    made = Draft(inputs, outputs, [], [])
    args, listed, regions = [], [], {}
    members: dict[tuple[str, int], int] = {}
    ports = {"input": iter(inputs), "output": iter(outputs)}
    for one in bound:
        role, name = one.given.role, one.given.name
        if role in ("input", "output"):
            tensor = next(ports[role])
            size = DTYPES[tensor.dtype].size
            # C requires only the element's alignment; compiled code can rely on the convention's.
            align = size if convention.arrays is not None and code.main in code.functions else None
            args.append(Argument(tensor.name, tensor.dtype, tensor.shape, _TYPES[role], align))
            listed.append(tensor.name)
            for n in tensor.shape:
                size *= n
            regions[one.parameter.name] = Region(size, "tensor", tensor.dtype, tensor.shape)
        elif role == "device":
            made.devices.append(identifier(name, "device"))
        else:
            pool = _pool(model, name, role, made)
            free = free_name(identifier(name, role), taken)
            direction = "scratch" if pool.content is None else "in"
            args.append(Argument(free, "uint8", (pool.size,), direction, max(pool.align, ALIGN), one.pointer))
            regions[one.parameter.name] = Region(pool.size, role)
            if pool.content is not None:
                _add_constants(made, free, pool)
                listed.append(free)
                for _, dtype, count, offset in pool.members:
                    members[one.parameter.name, offset] = count * DTYPES[dtype].size
    if len(made.devices) > 1:
        raise fault(
            f"main takes {len(made.devices)} device contexts: {', '.join(made.devices)}",
            model.place,
            "one: an operator is called with one device",
        )
    remark = "the whole model: main as TVM wrote it"
    main = Operator(NAME, code.main, tuple(args), _peak(model), convention, bool(made.devices), remark)
    made.operators.append(main)
    made.operators += _inner(model, regions, members, taken, made)
    made.steps.append(Step(NAME, tuple(listed), made.devices[0] if made.devices else None))
    return made


def _convention(model: Model) -> Convention:
    """Return main's calling convention from its definition, else from the exported interface."""
    function = model.code.functions.get(model.code.main)
    if function is not None:
        return PACKED if is_packed(function) else UNPACKED
    return UNPACKED if model.header.inputs or model.code.wrapper else PACKED


def _bind(model: Model) -> list[_Bound]:
    """Return main's parameters with their roles, from the wrapper or from names."""
    function = model.code.functions.get(model.code.main)
    wrapper = model.code.wrapper
    if function is None:
        return _bind_opaque(model, wrapper)
    if is_packed(function):
        return _bind_packed(model, function)
    given = wrapper.given if wrapper is not None and wrapper.main == function.name else ()
    if len(given) != len(function.parameters):
        given = tuple(_by_names(model, function))
    return [_Bound(p, g) for p, g in zip(function.parameters, given, strict=True)]


def _bind_packed(model: Model, function: Function) -> list[_Bound]:
    """Return the entries of packed arguments as main reads them."""
    entries = packed_entries(function)
    if not entries:
        raise fault(
            f"cannot parse the arguments of '{function.name}'", model.code.places[function.name], "packed arguments"
        )
    shown = Function(function.name, function.returns, tuple(Parameter("void", 1, e.name) for e in entries), "", 0, 0)
    given = _by_names(model, shown)
    return [_Bound(p, g, not e.tensor) for p, g, e in zip(shown.parameters, given, entries, strict=True)]


def _bind_opaque(model: Model, wrapper: Wrapper | None) -> list[_Bound]:
    """Return the parameters of a compiled main from the call in the wrapper's source, else inputs and outputs."""
    given: list[Given] = list(wrapper.given) if wrapper is not None else []
    if not given:
        given = [Given("input", p.name) for p in model.metadata.inputs]
        given += [Given("output", p.name) for p in model.metadata.outputs]
    if not given:
        raise fault(
            f"cannot determine the parameters of the compiled function '{model.code.main}'",
            model.place,
            "metadata.json with inputs and outputs, or the C source of the wrapper",
        )
    return [_Bound(Parameter("void", 1, g.name), g) for g in given]


def _by_names(model: Model, function: Function) -> list[Given]:
    """Return roles from the names of parameters, inputs before outputs."""
    count = len(model.header.inputs or model.metadata.inputs)
    ports = (*(p.name for p in model.metadata.inputs), *(p.name for p in model.metadata.outputs))
    names: Sequence[str] = (*model.header.inputs, *model.header.outputs) or ports
    found: list[Given] = []
    tensors_seen = 0
    for parameter in function.parameters:
        plain = parameter.name.removesuffix("_var").removesuffix("_buffer").removeprefix("arg_")
        role: Role
        if parameter.name.startswith("device_context_") or parameter.name in model.header.devices:
            found.append(Given("device", parameter.name.removeprefix("device_context_")))
            continue
        if "workspace" in parameter.name and parameter.type in ("uint8_t", "void"):
            found.append(Given("constants" if "const" in parameter.name else "workspace", plain))
            continue
        if tensors_seen < len(names):
            plain = names[tensors_seen]
        is_input = tensors_seen < count if count else any(same_name(n, plain) for n in model.relay.parameters)
        role = "input" if is_input else "output"
        tensors_seen += 1
        found.append(Given(role, plain))
    if not any(g.role == "input" for g in found) or not any(g.role == "output" for g in found):
        raise fault(
            f"the directory does not record which parameters of '{function.name}' are inputs and outputs",
            model.code.places[function.name],
            "the generated header (codegen/host/include), the wrapper's source, or metadata.json",
        )
    return found


def _seen(model: Model, bound: Sequence[_Bound], role: Role) -> list[Seen]:
    sizes = model.header.sizes or {}
    passed = _passed_on(model.code) if any(b.parameter.dtype is None for b in bound) else {}
    found = []
    for one in bound:
        if one.given.role == role:
            macro = f"TVMGEN_{model.metadata.module}_{one.given.name}_SIZE".upper()
            dtype = one.parameter.dtype or passed.get(one.parameter.name)
            found.append(Seen(one.given.name, dtype, sizes.get(macro)))
    return found


def _passed_on(code: Code) -> dict[str, str]:
    """Return the element types of the operators' parameters for main's variables, by variable."""
    main = code.functions.get(code.main)
    given = Calls(main, code.functions, {}, {}).given if main is not None else {}
    found: dict[str, str] = {}
    for called, calls in given.items():
        for arguments in calls:
            for parameter, text in zip(code.functions[called].parameters, arguments, strict=False):
                if parameter.dtype is not None:
                    found.setdefault(text, parameter.dtype)
    return found


def _pool(model: Model, name: str, role: Role, made: Draft) -> Pool:
    """Return a pool of main: the wrapper's array, or for workspaces the size in the header or metadata."""
    pools = model.code.pools
    known = pools.get(name)
    if known is None:  # main's own name for it: global_workspace_1
        same = [p for p in pools.values() if (p.content is None) == (role == "workspace")]
        known = same[0] if len(same) == 1 else None
    if known is not None:
        return known
    if role == "constants":
        raise fault(f"the source of constants {name!r} is missing", model.place, "<module>_lib0.c")
    sizes = model.header.sizes or {}
    module = model.metadata.module.upper()
    macros = [f"TVMGEN_{module}_{name.upper()}_WORKSPACE_POOL_SIZE", f"TVMGEN_{module}_WORKSPACE_SIZE"]
    size = next((sizes[m] for m in macros if m in sizes), None) or model.metadata.workspace
    if not size:
        raise fault(f"the directory does not record the size of workspace {name!r}", model.place, "<module>_lib0.c")
    made.remarks.append(
        f"the size of '{name}', {size} bytes, is an upper bound from the header or metadata.json: no array found"
    )
    return Pool(name, size, ALIGN)


def _add_constants(made: Draft, name: str, pool: Pool) -> None:
    file = f"constants/{name}.bin"
    assert pool.content is not None
    made.files[file] = pool.content
    listed = ", ".join(f"{member} {dtype}[{count}] at {offset}" for member, dtype, count, offset in pool.members)
    made.constants.append(
        Constant(name, file, "uint8", (pool.size,), max(pool.align, ALIGN), remark=f"{name}, little-endian: {listed}")
    )


def _peak(model: Model) -> int:
    """Return the bytes that main allocates with TVMBackendAllocWorkspace."""
    code = model.code
    if code.main in code.functions:
        return Workspaces(code.functions, code.places).peak(code.main)
    if "TVMBackendAllocWorkspace" not in code.undefined:
        return 0
    if not model.metadata.workspace:
        raise fault(
            f"'{code.main}' allocates workspaces, but the directory does not record their size",
            model.place,
            "workspace_size_bytes in metadata.json",
        )
    return model.metadata.workspace + -model.metadata.workspace % ALIGN


def _inner(
    model: Model,
    regions: Mapping[str, Region],
    members: Mapping[tuple[str, int], int],
    taken: set[str],
    made: Draft,
) -> list[Operator]:
    """Return the operators that main calls, for the registry."""
    code = model.code
    main = code.functions.get(code.main)
    if main is None:
        made.remarks += _untold(code)
        return []
    every = dict(regions)
    for text in code.texts.values():
        for array in arrays(text):
            if array.constant:
                every[array.name] = Region(array.count * DTYPES[array.dtype].size, "tensor", array.dtype)
    calls = Calls(main, code.functions, every, members)
    peaks = Workspaces(code.functions, code.places)
    found, unread = [], []
    for name in calls.given:
        function = code.functions[name]
        args = calls.arguments(function)
        if args is None or function.returns == "void":
            unread.append(name)
            continue
        short = identifier(name.removeprefix(f"tvmgen_{model.metadata.module}_"), "operator")
        convention = PACKED if is_packed(function) else UNPACKED
        found.append(Operator(free_name(short, taken), name, args, peaks.peak(name), convention))
    if unread:
        why = "as neither main's call nor the operator tells the size or the element type of every argument"
        made.remarks.append(f"not in the registry, {why}: {_listed(unread)}")
    return found


def _untold(code: Code) -> list[str]:
    """Return the remark that names the operators of a compiled main.

    Debug information can contain their types, but no file has the sizes: metadata.json has the operators' workspaces,
    and the Relay text precedes operator fusion.
    """
    defined = {s for _, m in code.objects.values() for s, d in m.defined.items() if d.kind == "function"}
    names = sorted((defined | set(code.functions)) - code.glue - {code.main})
    if not names:
        return []
    why = "main is compiled, and nothing in the folder tells the sizes of what operators take"
    return [f"not in the registry: {why} ({_listed(names)}). Declare the operators to call"]


def _listed(names: Sequence[str]) -> str:
    """Return names for a remark, shortened to a readable length."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(name[:200] for name in names[:_MOST_NAMES])}{more}"
