# SPDX-License-Identifier: Apache-2.0
"""An ahead-of-time main in C as steps of a manifest, with its memory as tensors that opwest plans again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod
from typing import TYPE_CHECKING

from opwest.base.diagnostics import OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.names import free_name, identifier
from opwest.frontends.mlf.c_text import Array, Function, arrays, values
from opwest.frontends.mlf.draft import Argument, Constant, Operator, Step
from opwest.frontends.mlf.draft import Tensor as Port
from opwest.frontends.mlf.inner import ALIGN, Workspaces
from opwest.frontends.mlf.unpack.accesses import Role, read_operator
from opwest.frontends.mlf.unpack.functions import NotUnpackedError, Trees, words_of
from opwest.frontends.mlf.unpack.main_body import Call, Location, Main, has_bytes, read_main
from opwest.frontends.mlf.unpack.memory import Base, Budget, extent_of
from opwest.frontends.mlf.unpack.scratch import (
    Group,
    Moved,
    alignment_of,
    common_alignment,
    constant_groups,
    limited,
    member_content,
    moved_scratch,
    parts_of,
    plan,
    shared_by_tvm,
)
from opwest.frontends.mlf.unpack.sources import Source, changed_sources, meanings, reasons
from opwest.frontends.mlf.unpack.tensors import (
    Calls,
    Tensor,
    TensorUse,
    bound_by_plan,
    check_first_writes,
    give_directions,
    give_types,
    memory_of,
    split,
)
from opwest.frontends.mlf.wrapper import Pool
from opwest.model.types.dtypes import DTYPES
from opwest.plan.problem import Share

if TYPE_CHECKING:
    pass


class Naming:
    """Names for everything, and with them the operators and the steps.

    One function becomes several operators if its calls pass tensors of different sizes.
    """

    def __init__(
        self,
        request: Request,
        calls: Calls,
        roles: Mapping[str, Sequence[Role]],
        tensors: Sequence[Tensor],
        moved: Mapping[str, Moved],
        groups: Mapping[str, Group],
        dropped: Mapping[str, Sequence[int]],
        align: int,
        allocated: Mapping[str, int],
        shares: Sequence[Share],
    ) -> None:
        self.request = request
        self.calls = calls
        self.roles = roles
        self.moved = moved
        self.groups = groups
        self.dropped = dropped
        self.align = align
        self.allocated = allocated
        self.shared = {(share.step, share.taker): share.taken for share in shares}
        self.taken = set(request.taken)
        self.tensor_of: dict[TensorUse, Tensor] = {use: t for t in tensors for use in t.uses}
        self.names: dict[TensorUse, str] = {}
        self.passed = [t for t in tensors if t.kind == "constant"]
        for tensor in tensors:
            name = tensor.name
            if tensor.kind not in ("input", "output"):
                name = free_name(identifier(name.removesuffix("_let"), "tensor"), self.taken)
            self.names |= dict.fromkeys(tensor.uses, name)
        self.group_names = self._group_names()
        self.operators: list[Operator] = []
        self.steps: list[Step] = []
        self._known: dict[tuple[str, tuple[Argument, ...]], str] = {}
        for step, call in enumerate(calls.calls):
            self._step(step, call)

    def _short(self, function: str) -> str:
        return identifier(function.removeprefix(f"tvmgen_{self.request.module}_"), "operator")

    def _group_names(self) -> dict[int, str]:
        """Return the name of each group of constants, by its identity."""
        found: dict[int, str] = {}
        for function, group in self.groups.items():
            if id(group) not in found:
                alone = len(group.names) == 1
                name = group.names[0].removesuffix("_let") if alone else f"{self._short(function)}_constants"
                found[id(group)] = free_name(identifier(name, "constants"), self.taken)
        return found

    def constants(self) -> tuple[list[Constant], dict[str, bytes]]:
        """Return the constants and their files."""
        found, files = [], {}
        for tensor in self.passed:
            name = self.names[tensor.uses[0]]
            files[f"constants/{name}.bin"] = tensor.content
            found.append(Constant(name, f"constants/{name}.bin", tensor.dtype, tensor.shape, ALIGN))
        for group in {id(g): g for g in self.groups.values()}.values():
            name = self.group_names[id(group)]
            listed = [f"{n} at {at}" for n, at in zip(group.names, group.offsets.values(), strict=True)]
            remark = f"{name}: {', '.join(listed)}" if len(listed) > 1 else None
            files[f"constants/{name}.bin"] = group.content
            found.append(Constant(name, f"constants/{name}.bin", "uint8", (len(group.content),), ALIGN, remark=remark))
        return found, files

    def _step(self, step: int, call: Call) -> None:
        args, listed, device = [], [], None
        roles, dropped = self.roles[call.function], self.dropped.get(call.function, ())
        names: set[str] = set()
        for number, (parameter, role) in enumerate(
            zip(self.request.functions[call.function].parameters, roles, strict=True)
        ):
            if role == "device":
                device = self.request.devices[call.args[number].name]
            if role == "device" or number in dropped:
                continue
            name = free_name(identifier(parameter.name, "p"), names)
            if role == "tensor":
                use = TensorUse(step, number)
                args.append(self._argument(name, use))
                listed.append(self.names[use])
            elif role == "workspace":
                size = max(self.moved[call.function].size, 1)
                args.append(Argument(name, "uint8", (size,), "scratch", limited(self.align, size)))
            else:
                group = self.groups[call.function]
                args.append(Argument(name, "uint8", (len(group.content),), "in", ALIGN))
                listed.append(self.group_names[id(group)])
        key = (f"{call.function} {device}", tuple(args))
        if key not in self._known:
            self._known[key] = free_name(self._short(call.function), self.taken)
            self.operators.append(
                Operator(
                    self._known[key],
                    call.function,
                    tuple(args),
                    self.allocated[call.function],
                    device=device is not None,
                    device_name=device,
                    void=self.request.functions[call.function].returns == "void",
                )
            )
        self.steps.append(Step(self._known[key], tuple(listed), device))

    def _argument(self, name: str, use: TensorUse) -> Argument:
        tensor = self.tensor_of[use]
        assert tensor.size is not None
        shape = tensor.shape or (tensor.size // DTYPES[tensor.dtype].size,)
        return Argument(name, tensor.dtype, shape, tensor.directions[use], in_place=self._in_place(use, tensor))

    def _in_place(self, use: TensorUse, tensor: Tensor) -> str | None:
        """Return the argument whose memory TVM's plan gives to a result."""
        taken = self.shared.get((use.step, tensor.name))
        if taken is None or tensor.kind != "own":
            return None
        parameters = self.request.functions[self.calls.calls[use.step].function].parameters
        numbers = [u.parameter for u, t in self.tensor_of.items() if u.step == use.step and t.name == taken]
        return identifier(parameters[numbers[0]].name, "p") if len(numbers) == 1 else None


@dataclass(frozen=True)
class Request:
    """Main, and the meaning of its parameters."""

    module: str
    main: Function
    functions: Mapping[str, Function]
    sources: Mapping[str, str]
    """The name of each function's source."""
    texts: Mapping[str, str]
    """The sources by name."""
    headers: Mapping[str, str]
    """The archive's headers that they include."""
    parameters: Mapping[str, Location]
    """The meaning of main's parameters. Their names are the keys of the other members."""
    ports: Mapping[str, Port]
    devices: Mapping[str, str]
    pools: Mapping[str, Pool]
    taken: frozenset[str]
    """Names in use."""


@dataclass
class Unpacked:
    """The steps of main with their operators and memory, and the changed sources."""

    operators: list[Operator]
    steps: list[Step]
    constants: list[Constant]
    files: dict[str, bytes]
    aligned: dict[str, int]
    """Alignments of intermediate tensors."""
    texts: dict[str, str]
    hooked: set[str]
    """Devices with hooks in main."""
    planner: str
    before: int
    """Bytes of TVM's plan."""
    after: int
    """Bytes of opwest's plan."""
    remarks: list[str] = field(default_factory=list)


def unpack(request: Request) -> Unpacked:
    """Return main as steps. Raises NotUnpackedError with the reason if it cannot be unpacked."""
    try:
        return _Unpacking(request).result()
    except RecursionError:
        raise NotUnpackedError("its code is nested too deeply") from None
    except OpwestError as error:  # a constant or an allocation; if it prevents the import too, it is reported again
        raise NotUnpackedError(error.diagnostics[0].message) from None


class _Unpacking:
    def __init__(self, request: Request) -> None:
        self.request = request
        texts = {name: request.texts[request.sources[name]] for name in request.functions}
        self.parsed = {name: Source(text, name) for name, text in request.texts.items()}
        every = self.parsed | {name: Source(text, name) for name, text in request.headers.items()}
        unread = reasons(request.functions, request.sources, every)
        self.trees = Trees(request.functions, texts, meanings(every.values()), unread)
        self.source = request.sources[request.main.name]
        listed = list(arrays(request.texts[self.source]))
        self.arrays: dict[str, Array] = {
            array.name: array
            for array in listed
            if array.constant and self._is_read(array) and sum(one.name == array.name for one in listed) == 1
        }
        for word in words_of(request.main, request.texts[self.source]):
            if word not in self.arrays and any(one.name == word and one.constant for one in listed):
                raise NotUnpackedError(f"main passes '{word}', whose values depend on the preprocessor")
        self.budget = Budget()
        self.main = self._main()
        self.roles = self._roles()
        reads = {name: read_operator(request.functions[name], roles, self.trees) for name, roles in self.roles.items()}
        self.calls = Calls(self.main.calls, reads, self.budget)

    def _is_read(self, array: Array) -> bool:
        """Return whether the declaration of an array in main's source has the meaning of its text."""
        text = self.parsed[self.source].declaration(array.name)
        start = len(self.request.texts[self.source][: max(array.start, 0)].encode())
        if text is None or text.conditional or not text.start < start < text.end:
            return False
        return not text.names & self.trees.meanings.keys()

    def _main(self) -> Main:
        request = self.request
        operators = set(request.functions) - {request.main.name}
        for parameter in request.main.parameters:
            place = request.parameters[parameter.name]
            if place.kind == "pool" and not has_bytes(parameter.type):
                raise NotUnpackedError(f"main's parameter '{parameter.name}' points to {parameter.type}, not to bytes")
        main = read_main(self.trees.tree(request.main.name), request.parameters, self.arrays, operators)
        for call in main.calls:
            count = len(request.functions[call.function].parameters)
            if count != len(call.args):
                raise NotUnpackedError(
                    f"main passes {len(call.args)} arguments to '{call.function}', which has {count}"
                )
            if sum(place.kind == "device" for place in call.args) > 1:
                raise NotUnpackedError(f"main passes several devices to '{call.function}'")
        return main

    def _roles(self) -> dict[str, list[Role]]:
        found: dict[str, list[Role]] = {}
        for call in self.main.calls:
            roles: list[Role] = []
            for place in call.args:
                role: Role = "device" if place.kind == "device" else "tensor"
                if place.kind == "pool":
                    role = "constants" if place.pool == "constants" else "workspace"
                roles.append(role)
            if found.setdefault(call.function, roles) != roles:
                raise NotUnpackedError(f"the calls of '{call.function}' pass different kinds of arguments")
            if "tensor" not in roles or "device" in roles[:-1]:
                raise NotUnpackedError(f"'{call.function}' has no tensor, or its device is not the last argument")
            for parameter, role in zip(self.request.functions[call.function].parameters, roles, strict=True):
                if parameter.stars != 1:
                    raise NotUnpackedError(f"'{call.function}' has the parameter '{parameter.name}', not a {role}")
        return found

    def result(self) -> Unpacked:
        """Return the parts of the manifest."""
        tensors = self._tensors()
        limit = self._workspace()
        parts = {name: parts_of(self.calls.operators[name], r, self.budget) for name, r in self.roles.items()}
        own = [t for t in tensors if t.kind == "own"]
        align = self._bound(own, parts)
        moved = {name: moved_scratch(name, p, limit, align, own, self.calls) for name, p in parts.items()}
        groups = self._groups()
        peaks = Workspaces(self.request.functions, {})
        allocated = {name: peaks.peak(name) for name in self.roles}
        before = limit + peaks.peak(self.request.main.name)
        used = [(moved[call.function].size, allocated[call.function]) for call in self.main.calls]
        shares = shared_by_tvm(own)
        planned = plan(own, used, align, before, shares)
        texts, dropped = changed_sources(
            self.calls.operators,
            self.roles,
            self.request,
            self.parsed,
            moved,
            groups,
            self._passed(),
            self.main.hook_functions,
        )
        naming = Naming(self.request, self.calls, self.roles, tensors, moved, groups, dropped, align, allocated, shares)
        constants, files = naming.constants()
        hooked = {self.request.devices[name] for name in self.main.hooks}
        remark = (
            f"main is unpacked: {len(naming.steps)} steps, {len(own)} intermediate tensors; "
            f"memory: {before} bytes in TVM's plan, {planned.size} bytes in opwest's"
        )
        aligned = {naming.names[t.uses[0]]: alignment_of(t, align) for t in own}
        return Unpacked(
            naming.operators,
            naming.steps,
            constants,
            files,
            aligned,
            texts,
            hooked,
            planned.planner,
            before,
            planned.size,
            [remark],
        )

    def _tensors(self) -> list[Tensor]:
        """Return all tensors with directions and types, and with sizes where the code shows them."""
        found = []
        for place, uses in memory_of(self.main.calls).items():
            if place.kind in ("input", "output"):
                port = self.request.ports[place.name]
                size = prod(port.shape) * DTYPES[port.dtype].size
                found.append(Tensor(port.name, place.kind, uses, size, None, None, port.dtype, port.shape))
            elif place.kind in ("constants", "array"):
                name, dtype, content = self.content(place)
                shape = (len(content) // DTYPES[dtype].size,)
                found.append(Tensor(name, "constant", uses, len(content), None, None, dtype, shape, {}, content))
            else:
                allocated = place.kind == "allocated"
                limit = place.offset if allocated else self.request.pools[place.pool].size - place.offset
                if limit <= 0:
                    raise NotUnpackedError(f"main uses the workspace at {place.offset}, beyond its end")
                found += split(place, uses, self.calls, limit)
        give_directions(found, self.calls, self.roles)
        give_types(found, self.calls)
        return found

    def content(self, place: Location) -> tuple[str, str, bytes]:
        """Return the name, the element type and the bytes of a constant that main passes."""
        if place.kind == "constants":
            return member_content(self.request.pools[place.pool], place.offset)
        array, text = self.arrays[place.name], self.request.texts[self.source]
        return array.name, array.dtype, values(text, array.start, array.dtype, array.count, self.source)

    def _workspace(self) -> int:
        """Return the size of TVM's workspace, bytes."""
        found = [p for p in self.request.pools.values() if p.content is None]
        if len(found) > 1:
            raise NotUnpackedError(f"main uses {len(found)} workspaces")
        return found[0].size if found else 0

    def _bound(self, own: Sequence[Tensor], parts: Mapping[str, list[tuple[int, int | None, Base]]]) -> int:
        """Bound the sizes that the code does not show by TVM's plan; return the alignment of that plan."""
        bound_by_plan(own, self.calls, {step: parts[call.function] for step, call in enumerate(self.main.calls)})
        check_first_writes(own, self.calls)
        offsets = [t.offset for t in own if t.offset is not None]
        return common_alignment([*offsets, *(o for listed in parts.values() for o, _, _ in listed)])

    def _groups(self) -> dict[str, Group]:
        """Return the constants that operators read from TVM's structure, by operator."""
        used: dict[str, set[int]] = {}
        pools = [p for p in self.request.pools.values() if p.content is not None]
        if len(pools) > 1:
            raise NotUnpackedError(f"main uses {len(pools)} structures of constants")
        for name, roles in self.roles.items():
            for base, role in zip(self.calls.operators[name].bases, roles, strict=True):
                if role == "constants" and base.parts:
                    used.setdefault(name, set()).update(base.parts)
                    self._check_constants(name, base, pools)
        return constant_groups(used, pools[0], ALIGN) if pools else {}

    def _check_constants(self, name: str, base: Base, pools: Sequence[Pool]) -> None:
        """Check that an operator reads each constant within its size."""
        for offset, part in base.parts.items():
            if any(access.writes for access in part.accesses.values()):
                raise NotUnpackedError(f"'{name}' writes constants")
            known = {start: count * DTYPES[dtype].size for _, dtype, count, start in pools[0].members}
            read = extent_of(part, self.budget).size
            if read is not None and read > known.get(offset, read):
                raise NotUnpackedError(
                    f"'{name}' reads {read} bytes of the constant at {offset}, {known[offset]} bytes"
                )

    def _passed(self) -> set[str]:
        """Return the constant arrays that main passes."""
        return {place.name for call in self.main.calls for place in call.args if place.kind == "array"}
