# SPDX-License-Identifier: Apache-2.0
"""Models of the ahead-of-time executor: the calls of main as steps, or main as one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.compiler.names import free_name, identifier
from opwest.frontends.mlf.c_text import Function, Parameter, arrays, is_packed, packed_entries, same_name
from opwest.frontends.mlf.code import Code, undefined_shifts
from opwest.frontends.mlf.draft import Argument, Constant, Draft, Operator, Step
from opwest.frontends.mlf.inner import ALIGN, Calls, Region, Workspaces
from opwest.frontends.mlf.metadata import IoTensor
from opwest.frontends.mlf.ports import Model, check_options, kept_name, tensors
from opwest.frontends.mlf.unpack.functions import NotUnpackedError
from opwest.frontends.mlf.unpack.main_body import Location
from opwest.frontends.mlf.unpack.steps import Request, unpack
from opwest.frontends.mlf.wrapper import Given, Pool, Role
from opwest.model.types.conventions import PACKED, UNPACKED, Convention
from opwest.model.types.dtypes import DTYPES

NAME = "whole_model"
"""The name of the operator for main."""

_MAX_NAMES = 50
_TYPES = {"input": "in", "output": "out"}


@dataclass(frozen=True)
class _Bound:
    """A parameter of main and its argument."""

    parameter: Parameter
    given: Given
    pointer: bool = False
    """Packed arguments: a bare pointer instead of a DLTensor."""


def draft(model: Model) -> Draft:
    """Return the model, with the calls of main as steps where it can be unpacked. Raises OpwestError."""
    bound, convention = _bind(model), _convention(model)
    taken: set[str] = {NAME}
    result = Draft()
    result.inputs = tensors("input", _seen(model, bound, "input"), model, taken, result.remarks)
    result.outputs = tensors("output", _seen(model, bound, "output"), model, taken, result.remarks)
    names = [*(t.name for t in (*result.inputs, *result.outputs)), *(b.given.name for b in bound)]
    check_options(model.options, names, model.place)
    for argument in bound:
        if argument.given.role == "device":
            result.devices.append(kept_name(argument.given.name, "device", taken, result.remarks))
    if not _unpacked(model, bound, taken, result):
        _whole(model, bound, convention, taken, result)
    result.remarks += undefined_shifts(model.code)
    return result


def _unpacked(model: Model, bound: Sequence[_Bound], taken: set[str], result: Draft) -> bool:
    """Add the calls of main as steps; otherwise add a remark with the reason and return False."""
    code = model.code
    main = code.functions.get(code.main)
    try:
        if main is None:
            raise NotUnpackedError("it is compiled")
        if is_packed(main):
            raise NotUnpackedError("it has packed arguments")
        ports = {"input": iter(result.inputs), "output": iter(result.outputs)}
        devices = iter(result.devices)
        places, given, named, pools = {}, {}, {}, {}
        for argument in bound:
            name, role = argument.parameter.name, argument.given.role
            if role in ("input", "output"):
                places[name], given[name] = Location(role, name), next(ports[role])
            elif role == "device":
                places[name], named[name] = Location(role, name), next(devices)
            else:
                places[name] = Location("pool", name, pool=role)
                pools[name] = _pool(model, argument.given.name, role, result)
        texts = unpack(
            Request(model.metadata.module, main, code, model.headers, places, given, named, pools), taken, result
        )
    except NotUnpackedError as reason:
        result.remarks.append(f"main is not unpacked, but one operator: {reason}")
        return False
    code.texts.update(texts)
    return True


def _whole(model: Model, bound: Sequence[_Bound], convention: Convention, taken: set[str], result: Draft) -> None:
    """Add main as the only step."""
    code = model.code
    if len(result.devices) > 1:
        text = f"main takes {len(result.devices)} device contexts: {', '.join(result.devices)}; {result.remarks[-1]}"
        raise fault(text, model.place, "one device context, or a main that can be unpacked")
    args, listed, regions = [], [], {}
    members: dict[tuple[str, int], int] = {}
    ports = {"input": iter(result.inputs), "output": iter(result.outputs)}
    for argument in bound:
        role, name = argument.given.role, argument.given.name
        if role in ("input", "output"):
            tensor = next(ports[role])
            item = DTYPES[tensor.dtype].size
            # C requires only the element's alignment; compiled code can rely on the convention's.
            align = item if convention.arrays is not None and code.main in code.functions else None
            args.append(Argument(tensor.name, tensor.dtype, tensor.shape, _TYPES[role], align))
            listed.append(tensor.name)
            regions[argument.parameter.name] = Region(item * prod(tensor.shape), "tensor", tensor.dtype, tensor.shape)
        elif role != "device":
            pool = _pool(model, name, role, result)
            free = free_name(identifier(name, role), taken)
            direction = "scratch" if pool.content is None else "in"
            args.append(Argument(free, "uint8", (pool.size,), direction, max(pool.align, ALIGN), argument.pointer))
            regions[argument.parameter.name] = Region(pool.size, role)
            if pool.content is not None:
                _add_constants(result, free, pool)
                listed.append(free)
                for _, dtype, count, offset in pool.members:
                    members[argument.parameter.name, offset] = count * DTYPES[dtype].size
    remark = "the whole model: main as generated by TVM"
    main = Operator(NAME, code.main, tuple(args), _peak(model), convention, bool(result.devices), remark)
    result.operators.append(main)
    result.operators += _inner(model, regions, members, taken, result)
    result.steps.append(Step(NAME, tuple(listed), result.devices[0] if result.devices else None))


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
        return _bind_opaque(model)
    if is_packed(function):
        return _bind_packed(model, function)
    given = wrapper.given if wrapper is not None and wrapper.main == function.name else ()
    if len(given) != len(function.parameters):
        given = tuple(_by_names(model, function.name, function.parameters))
    return [_Bound(p, g) for p, g in zip(function.parameters, given, strict=True)]


def _bind_packed(model: Model, function: Function) -> list[_Bound]:
    """Return main's entries of packed arguments."""
    entries = packed_entries(function)
    if not entries:
        place = model.code.places[function.name]
        raise fault(f"cannot parse the arguments of '{function.name}'", place, "packed arguments")
    parameters = [Parameter("void", 1, entry.name) for entry in entries]
    given = _by_names(model, function.name, parameters)
    return [_Bound(p, g, not e.tensor) for p, g, e in zip(parameters, given, entries, strict=True)]


def _bind_opaque(model: Model) -> list[_Bound]:
    """Return the parameters of a compiled main from the call in the wrapper's source, else inputs and outputs."""
    given = list(model.code.wrapper.given) if model.code.wrapper is not None else []
    if not given:
        given = [Given("input", p.name) for p in model.metadata.inputs]
        given += [Given("output", p.name) for p in model.metadata.outputs]
    if not given:
        text = f"cannot determine the parameters of the compiled function '{model.code.main}'"
        expected = "metadata.json with inputs and outputs, or the C source of the wrapper"
        raise fault(text, model.place, expected)
    return [_Bound(Parameter("void", 1, g.name), g) for g in given]


def _by_names(model: Model, function: str, parameters: Sequence[Parameter]) -> list[Given]:
    """Return roles from the names of a function's parameters, inputs before outputs."""
    count = len(model.header.inputs or model.metadata.inputs)
    ports = (*(p.name for p in model.metadata.inputs), *(p.name for p in model.metadata.outputs))
    names: Sequence[str] = (*model.header.inputs, *model.header.outputs) or ports
    given: list[Given] = []
    tensors_seen = 0
    for parameter in parameters:
        plain = parameter.name.removesuffix("_var").removesuffix("_buffer").removeprefix("arg_")
        if parameter.name.startswith("device_context_") or parameter.name in model.header.devices:
            given.append(Given("device", parameter.name.removeprefix("device_context_")))
            continue
        if "workspace" in parameter.name and parameter.type in ("uint8_t", "void"):
            given.append(Given("constants" if "const" in parameter.name else "workspace", plain))
            continue
        if tensors_seen < len(names):
            plain = names[tensors_seen]
        is_input = tensors_seen < count if count else any(same_name(n, plain) for n in model.relay.parameters)
        tensors_seen += 1
        given.append(Given("input" if is_input else "output", plain))
    if not {"input", "output"} <= {g.role for g in given}:
        text = f"the directory does not record which parameters of '{function}' are inputs and outputs"
        expected = "the generated header (codegen/host/include), the wrapper's source, or metadata.json"
        raise fault(text, model.code.places[function], expected)
    return given


def _seen(model: Model, bound: Sequence[_Bound], role: Role) -> list[IoTensor]:
    passed = _passed_on(model.code) if any(b.parameter.dtype is None for b in bound) else {}
    seen = []
    for argument in bound:
        name = argument.given.name
        if argument.given.role == role:
            macro = f"TVMGEN_{model.metadata.module}_{name}_SIZE".upper()
            dtype = argument.parameter.dtype or passed.get(argument.parameter.name)
            seen.append(IoTensor(name, dtype, model.header.sizes.get(macro)))
    return seen


def _passed_on(code: Code) -> dict[str, str]:
    """Return the element types of the operators' parameters for main's variables, by variable."""
    main = code.functions.get(code.main)
    given = Calls(main, code.functions, {}, {}).given if main is not None else {}
    dtypes: dict[str, str] = {}
    for called, calls in given.items():
        for arguments in calls:
            for parameter, text in zip(code.functions[called].parameters, arguments, strict=False):
                if parameter.dtype is not None:
                    dtypes.setdefault(text, parameter.dtype)
    return dtypes


def _pool(model: Model, name: str, role: Role, result: Draft) -> Pool:
    """Return a pool of main: the wrapper's array, or for workspaces the size in the header or metadata."""
    pools = model.code.pools
    known = pools.get(name)
    if known is None:  # main uses another name, such as global_workspace_1
        same = [p for p in pools.values() if (p.content is None) == (role == "workspace")]
        known = same[0] if len(same) == 1 else None
    if known is not None:
        return known
    if role == "constants":
        raise fault(f"the source of constants {name!r} is missing", model.place, "<module>_lib0.c")
    sizes, module = model.header.sizes, model.metadata.module.upper()
    macros = [f"TVMGEN_{module}_{name.upper()}_WORKSPACE_POOL_SIZE", f"TVMGEN_{module}_WORKSPACE_SIZE"]
    size = next((sizes[m] for m in macros if m in sizes), None) or model.metadata.workspace
    if not size:
        raise fault(f"the directory does not record the size of workspace {name!r}", model.place, "<module>_lib0.c")
    remark = f"the size of '{name}', {counted(size, 'byte')}, is an upper bound, from the header or metadata.json"
    if remark not in result.remarks:
        result.remarks.append(remark)
    return Pool(name, size, ALIGN)


def _add_constants(result: Draft, name: str, pool: Pool) -> None:
    file, align = f"constants/{name}.bin", max(pool.align, ALIGN)
    assert pool.content is not None
    result.files[file] = pool.content
    listed = ", ".join(f"{member} {dtype}[{count}] at {offset}" for member, dtype, count, offset in pool.members)
    remark = f"{name}, little-endian: {listed}"
    result.constants.append(Constant(name, file, "uint8", (pool.size,), align, remark=remark))


def _peak(model: Model) -> int:
    """Return the bytes that main allocates with TVMBackendAllocWorkspace."""
    code = model.code
    if code.main in code.functions:
        return Workspaces(code.functions, code.places).peak(code.main)
    if "TVMBackendAllocWorkspace" not in code.undefined:
        return 0
    if not model.metadata.workspace:
        text = f"'{code.main}' allocates workspaces, but the directory does not record their size"
        raise fault(text, model.place, "workspace_size_bytes in metadata.json")
    return model.metadata.workspace + -model.metadata.workspace % ALIGN


def _inner(
    model: Model, regions: Mapping[str, Region], members: Mapping[tuple[str, int], int], taken: set[str], result: Draft
) -> list[Operator]:
    """Return the operators that main calls, for the registry."""
    code = model.code
    main = code.functions.get(code.main)
    if main is None:
        result.remarks += _unregistered(code)
        return []
    every = dict(regions)
    for text in code.texts.values():
        for array in arrays(text):
            if array.constant:
                every[array.name] = Region(array.count * DTYPES[array.dtype].size, "tensor", array.dtype)
    calls = Calls(main, code.functions, every, members)
    peaks = Workspaces(code.functions, code.places)
    operators, unread = [], []
    for name in calls.given:
        function = code.functions[name]
        args = calls.arguments(function)
        if args is None or function.returns == "void":
            unread.append(name)
            continue
        short = identifier(name.removeprefix(f"tvmgen_{model.metadata.module}_"), "operator")
        convention = PACKED if is_packed(function) else UNPACKED
        operators.append(Operator(free_name(short, taken), name, args, peaks.peak(name), convention))
    if unread:
        reason = "the size or the element type of an argument is unknown"
        result.remarks.append(f"not in the registry, because {reason}: {_listed(unread)}")
    return operators


def _unregistered(code: Code) -> list[str]:
    """Return the remark on the operators of a compiled main.

    Debug information can contain their types, but no file contains the sizes: metadata.json has the operators'
    workspaces, and the Relay text precedes operator fusion.
    """
    defined = {s for _, m in code.objects.values() for s, d in m.defined.items() if d.kind == "function"}
    names = sorted((defined | set(code.functions)) - code.glue - {code.main})
    if not names:
        return []
    reason = "main is compiled and the sizes of the arguments are not recorded"
    return [f"not in the registry, because {reason}: {_listed(names)}. Declare those to call"]


def _listed(names: Sequence[str]) -> str:
    """Return names for a remark, shortened to a readable length."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(name[:200] for name in names[:_MAX_NAMES])}{more}"
