# SPDX-License-Identifier: Apache-2.0
"""An ahead-of-time main in C as steps of a manifest, with its memory as tensors that opwest plans again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import gcd, prod

from opwest.base.diagnostics import OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.names import free_name, identifier
from opwest.frontends.mlf.c_text import Array, Function, arrays, values
from opwest.frontends.mlf.code import Code
from opwest.frontends.mlf.draft import Argument, Constant, Draft, Operator, Step
from opwest.frontends.mlf.draft import Tensor as Port
from opwest.frontends.mlf.inner import ALIGN, Workspaces
from opwest.frontends.mlf.unpack.accesses import read_operator
from opwest.frontends.mlf.unpack.functions import NotUnpackedError, Trees
from opwest.frontends.mlf.unpack.main_body import Call, Location, Main, has_bytes, read_main
from opwest.frontends.mlf.unpack.memory import Base, Budget, Role, extent_of
from opwest.frontends.mlf.unpack.scratch import (
    Group,
    Range,
    alignment_of,
    block_of,
    constant_groups,
    limited,
    member_content,
    parts_of,
    plan,
    ranges_of,
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
from opwest.model.types.conventions import UNPACKED, WorkspaceNeed
from opwest.model.types.dtypes import DTYPES
from opwest.plan.problem import Block, Share
from opwest.plan.uses import Lifetime, lifetimes


@dataclass
class Naming:
    """Names for everything, and with them the operators and the steps.

    One function becomes several operators if its calls pass tensors of different sizes.
    """

    request: Request
    calls: Calls
    tensors: Sequence[Tensor]
    ranges: Mapping[str, Sequence[Range]]
    groups: Mapping[str, Group]
    dropped: Mapping[str, Sequence[int]]
    align: int
    limit: int
    allocated: Mapping[str, int]
    shares: Sequence[Share]
    taken: set[str]

    def __post_init__(self) -> None:
        self.shared = {(share.step, share.taker): share.taken for share in self.shares}
        self.tensor_of: dict[TensorUse, Tensor] = {use: t for t in self.tensors for use in t.uses}
        self.names: dict[TensorUse, str] = {}
        for tensor in self.tensors:
            name = tensor.name
            if tensor.kind not in ("input", "output"):
                name = free_name(identifier(name.removesuffix("_let"), "tensor"), self.taken)
            self.names |= dict.fromkeys(tensor.uses, name)
        self.group_names: dict[int, str] = {}
        """The name of each group of constants, by its identity."""
        for function, group in self.groups.items():
            if id(group) not in self.group_names:
                alone = len(group.names) == 1
                name = group.names[0].removesuffix("_let") if alone else f"{self._short(function)}_constants"
                self.group_names[id(group)] = free_name(identifier(name, "constants"), self.taken)
        self.scratch: list[tuple[str, int, Range]] = []
        """The memory of operators, with the name of its buffer and the step."""
        self.operators: list[Operator] = []
        self.steps: list[Step] = []
        self._known: dict[tuple[str, tuple[Argument, ...]], str] = {}
        for step, call in enumerate(self.calls.calls):
            self._step(step, call)

    def _short(self, function: str) -> str:
        return identifier(function.removeprefix(f"tvmgen_{self.request.module}_"), "operator")

    def constants(self) -> tuple[list[Constant], dict[str, bytes]]:
        """Return the constants and their files."""
        constants, files = [], {}
        for tensor in self.tensors:
            if tensor.kind == "constant":
                name = self.names[tensor.uses[0]]
                files[f"constants/{name}.bin"] = tensor.content
                constants.append(Constant(name, f"constants/{name}.bin", tensor.dtype, tensor.shape, ALIGN))
        for group in {id(g): g for g in self.groups.values()}.values():
            name, file = self.group_names[id(group)], f"constants/{self.group_names[id(group)]}.bin"
            listed = [f"{n} at {at}" for n, at in zip(group.names, group.offsets.values(), strict=True)]
            remark = f"{name}: {', '.join(listed)}" if len(listed) > 1 else None
            files[file] = group.content
            constants.append(Constant(name, file, "uint8", (len(group.content),), ALIGN, remark=remark))
        return constants, files

    def _step(self, step: int, call: Call) -> None:
        args, listed, device = [], [], None
        operator, dropped = self.calls.operators[call.function], self.dropped.get(call.function, ())
        function = operator.tree.function
        names: set[str] = set()
        for number, (parameter, role) in enumerate(zip(function.parameters, operator.roles, strict=True)):
            if role == "device":
                device = self.request.devices[call.args[number].name]
            if role == "device" or number in dropped:
                continue
            if role == "workspace":
                args += self._scratch(step, number, names)
                continue
            name = free_name(identifier(parameter.name, "p"), names)
            if role == "tensor":
                use = TensorUse(step, number)
                args.append(self._argument(name, use))
                listed.append(self.names[use])
            else:
                group = self.groups[call.function]
                args.append(Argument(name, "uint8", (len(group.content),), "in", ALIGN))
                listed.append(self.group_names[id(group)])
        args += self._scratch(step, None, names)
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
                    void=function.returns == "void",
                )
            )
        self.steps.append(Step(self._known[key], tuple(listed), device))

    def _alignment(self, part: Range) -> int:
        return limited(self.align if part.parameter is not None else ALIGN, part.size)

    def _scratch(self, step: int, parameter: int | None, names: set[str]) -> list[Argument]:
        """Return the arguments in place of a parameter for the workspace, or of allocations."""
        args = []
        for part in self.ranges[self.calls.calls[step].function]:
            if part.parameter == parameter:
                name = free_name(identifier(part.name, "p"), names)
                shape, align = (part.size,), self._alignment(part)
                args.append(Argument(name, "uint8", shape, "scratch", align, phases=part.phases))
                self.scratch.append((f"{name} of step {step}", step, part))
        return args

    def _argument(self, name: str, use: TensorUse) -> Argument:
        tensor = self.tensor_of[use]
        assert tensor.size is not None
        shape = tensor.shape or (tensor.size // DTYPES[tensor.dtype].size,)
        place, phases = self._in_place(use, tensor), self.calls.phases(use)
        return Argument(name, tensor.dtype, shape, tensor.directions[use], in_place=place, phases=phases)

    def blocks(self) -> list[Block]:
        """Return the memory between and in the steps, with the names of the manifest's plan."""
        own = [tensor for tensor in self.tensors if tensor.kind == "own"]
        used = [
            {self.names[t.uses[0]]: self.calls.span(t, step) for t in own if any(u.step == step for u in t.uses)}
            for step in range(len(self.calls.calls))
        ]
        lives = lifetimes(used, range(len(used)), {}, ())
        blocks = []
        for tensor in own:
            assert tensor.size is not None
            name = self.names[tensor.uses[0]]
            blocks.append(block_of(name, tensor.size, alignment_of(tensor, self.align), lives[name]))
        for name, step, part in self.scratch:
            life = Lifetime(step, step, *(part.phases or ()))
            blocks.append(block_of(name, part.size, self._alignment(part), life))
        for step, call in enumerate(self.calls.calls):
            if self.allocated[call.function]:
                need = WorkspaceNeed(self.allocated[call.function], UNPACKED.workspace_alignment)
                name = f"opwest_workspace of step {step}"
                blocks.append(block_of(name, need.planned, need.align, Lifetime(step, step)))
        return blocks

    def given(self) -> dict[str, int]:
        """Return the offsets in TVM's plan by block."""
        stack = self.limit + -self.limit % ALIGN
        placed = {self.names[t.uses[0]]: t.offset for t in self.tensors if t.offset is not None}
        placed |= {self.names[t.uses[0]]: stack + t.stack for t in self.tensors if t.stack is not None}
        for name, step, part in self.scratch:
            top = 0 if part.parameter is not None else stack + self.calls.calls[step].top
            placed[name] = top + part.start
        return placed

    def final_shares(self) -> list[Share]:
        """Return the results in place with the names of blocks."""
        names = {tensor.name: self.names[tensor.uses[0]] for tensor in self.tensors if tensor.kind == "own"}
        return [Share(names[share.taken], names[share.taker], share.step) for share in self.shares]

    def _in_place(self, use: TensorUse, tensor: Tensor) -> str | None:
        """Return the argument whose memory TVM's plan gives to a result."""
        taken = self.shared.get((use.step, tensor.name))
        if taken is None or tensor.kind != "own":
            return None
        parameters = self.request.code.functions[self.calls.calls[use.step].function].parameters
        numbers = [u.parameter for u, t in self.tensor_of.items() if u.step == use.step and t.name == taken]
        return identifier(parameters[numbers[0]].name, "p") if len(numbers) == 1 else None


@dataclass(frozen=True)
class Request:
    """Main, and the meaning of its parameters."""

    module: str
    main: Function
    code: Code
    headers: Mapping[str, str]
    """The archive's headers that the sources include."""
    parameters: Mapping[str, Location]
    """The meaning of main's parameters. Their names are the keys of the other members."""
    ports: Mapping[str, Port]
    devices: Mapping[str, str]
    pools: Mapping[str, Pool]


def unpack(request: Request, taken: Collection[str], draft: Draft) -> dict[str, str]:
    """Add main as steps to a draft, and return the changed sources. `taken` are the names in use.

    Raises NotUnpackedError with the reason if main cannot be unpacked; the draft is then as before.
    """
    try:
        return _Unpacking(request).add_to(draft, taken)
    except RecursionError:
        raise NotUnpackedError("its code is nested too deeply") from None
    except OpwestError as error:  # a constant or an allocation; if it prevents the import too, it is reported again
        raise NotUnpackedError(error.diagnostics[0].message) from None


class _Unpacking:
    def __init__(self, request: Request) -> None:
        self.request = request
        code = request.code
        texts = {name: code.texts[code.sources[name]] for name in code.functions}
        self.parsed = {name: Source(text, name) for name, text in code.texts.items()}
        every = self.parsed | {name: Source(text, name) for name, text in request.headers.items()}
        unread = reasons(code.functions, code.sources, every)
        self.trees = Trees(code.functions, texts, meanings(every.values()), unread, request.main.name)
        self.source = code.sources[request.main.name]
        self.text = code.texts[self.source]
        listed = list(arrays(self.text))
        self.arrays: dict[str, Array] = {
            array.name: array
            for array in listed
            if array.constant and self._is_read(array) and sum(other.name == array.name for other in listed) == 1
        }
        for word in self.trees.words(request.main.name):
            if word not in self.arrays and any(other.name == word and other.constant for other in listed):
                raise NotUnpackedError(f"main passes '{word}', whose values depend on the preprocessor")
        self.budget = Budget()
        self.main = self._main()
        roles = self._roles()
        self.operators = {name: read_operator(code.functions[name], roles[name], self.trees) for name in roles}
        self.calls = Calls(self.main.calls, self.operators, self.budget)

    def _is_read(self, array: Array) -> bool:
        """Return whether the declaration of an array in main's source has the meaning of its text."""
        text = self.parsed[self.source].declaration(array.name)
        start = len(self.text[: max(array.start, 0)].encode())
        if text is None or text.conditional or not text.start < start < text.end:
            return False
        return not text.names & self.trees.meanings.keys()

    def _main(self) -> Main:
        request = self.request
        operators = set(request.code.functions) - {request.main.name}
        for parameter in request.main.parameters:
            place = request.parameters[parameter.name]
            if place.kind == "pool" and not has_bytes(parameter.type):
                raise NotUnpackedError(f"main's parameter '{parameter.name}' points to {parameter.type}, not to bytes")
        main = read_main(self.trees.tree(request.main.name), request.parameters, self.arrays, operators)
        for call in main.calls:
            count = len(request.code.functions[call.function].parameters)
            if count != len(call.args):
                text = f"main passes {counted(len(call.args), 'argument')} to '{call.function}', which has {count}"
                raise NotUnpackedError(text)
            if sum(place.kind == "device" for place in call.args) > 1:
                raise NotUnpackedError(f"main passes several devices to '{call.function}'")
        return main

    def _roles(self) -> dict[str, list[Role]]:
        known: dict[str, list[Role]] = {}
        for call in self.main.calls:
            roles: list[Role] = []
            for place in call.args:
                role: Role = "device" if place.kind == "device" else "tensor"
                if place.kind == "pool":
                    role = "constants" if place.pool == "constants" else "workspace"
                roles.append(role)
            if known.setdefault(call.function, roles) != roles:
                raise NotUnpackedError(f"the calls of '{call.function}' pass different kinds of arguments")
            if "tensor" not in roles or "device" in roles[:-1]:
                raise NotUnpackedError(f"'{call.function}' has no tensor, or its device is not the last argument")
            for parameter, role in zip(self.request.code.functions[call.function].parameters, roles, strict=True):
                if parameter.stars != 1:
                    raise NotUnpackedError(f"'{call.function}' has the parameter '{parameter.name}', not a {role}")
        return known

    def add_to(self, draft: Draft, taken: Collection[str]) -> dict[str, str]:
        """Add the steps with their operators and memory to a draft; return the changed sources."""
        tensors = self._tensors()
        limit = self._workspace()
        parts = {name: parts_of(operator, self.budget) for name, operator in self.operators.items()}
        own = [t for t in tensors if t.kind == "own"]
        bound_by_plan(own, self.calls, {step: parts[call.function] for step, call in enumerate(self.main.calls)})
        check_first_writes(own, self.calls)
        offsets = [t.offset for t in own if t.offset is not None]
        align = gcd(ALIGN, *offsets, *(offset for listed in parts.values() for offset, _, _ in listed))
        ranges = {
            name: ranges_of(name, listed, limit, own, self.calls, self.trees.words(name))
            for name, listed in parts.items()
        }
        groups = self._groups()
        peaks = Workspaces(self.request.code.functions, {})
        allocated = {name: 0 if o.allocations else peaks.peak(name) for name, o in self.operators.items()}
        before = limit + peaks.peak(self.request.main.name)
        shares = shared_by_tvm(own, self.calls)
        texts, dropped = changed_sources(self.operators, self.request, self.parsed, ranges, groups, self.main)
        naming = Naming(
            self.request, self.calls, tensors, ranges, groups, dropped, align, limit, allocated, shares, set(taken)
        )
        bound = before
        if any(allocated.values()):  # main as one operator has the function's bookkeeping, too
            need = WorkspaceNeed(peaks.peak(self.request.main.name), UNPACKED.workspace_alignment)
            bound = limit + block_of("", need.planned, need.align, Lifetime(0, 0)).size
        placed = plan(naming.blocks(), naming.final_shares(), bound, naming.given())
        draft.operators, draft.steps = naming.operators, naming.steps
        draft.constants, files = naming.constants()
        draft.files |= files
        draft.aligned = {naming.names[t.uses[0]]: alignment_of(t, align) for t in own}
        draft.accelerators = {self.request.devices[name] for name in self.main.hooks}
        draft.planner = placed.planner if placed.planner != "greedy" else None
        draft.offsets = dict(placed.offsets)
        draft.memory = (before, placed.size)
        draft.remarks.append(
            f"main is unpacked: {counted(len(naming.steps), 'step')}, {len(own)} intermediate tensors; "
            f"memory: {before} bytes in TVM's plan, {counted(placed.size, 'byte')} in opwest's"
        )
        return texts

    def _tensors(self) -> list[Tensor]:
        """Return all tensors with directions and types, and with sizes where the code shows them."""
        tensors = []
        for place, uses in memory_of(self.main.calls).items():
            if place.kind in ("input", "output"):
                port = self.request.ports[place.name]
                size = prod(port.shape) * DTYPES[port.dtype].size
                tensors.append(Tensor(port.name, place.kind, uses, size, None, None, port.dtype, port.shape))
            elif place.kind in ("constants", "array"):
                name, dtype, content = self.content(place)
                shape = (len(content) // DTYPES[dtype].size,)
                tensors.append(Tensor(name, "constant", uses, len(content), None, None, dtype, shape, {}, content))
            else:
                allocated = place.kind == "allocated"
                limit = place.offset if allocated else self.request.pools[place.pool].size - place.offset
                if limit <= 0:
                    raise NotUnpackedError(f"main uses the workspace at {place.offset}, beyond its end")
                tensors += split(place, uses, self.calls, limit, self.main.stack.get(place.name) if allocated else None)
        give_directions(tensors, self.calls)
        give_types(tensors, self.calls)
        return tensors

    def content(self, place: Location) -> tuple[str, str, bytes]:
        """Return the name, the element type and the bytes of a constant that main passes."""
        if place.kind == "constants":
            return member_content(self.request.pools[place.pool], place.offset)
        array = self.arrays[place.name]
        return array.name, array.dtype, values(self.text, array.start, array.dtype, array.count, self.source)

    def _workspace(self) -> int:
        """Return the size of TVM's workspace, bytes."""
        workspaces = [p for p in self.request.pools.values() if p.content is None]
        if len(workspaces) > 1:
            raise NotUnpackedError(f"main uses {counted(len(workspaces), 'workspace')}")
        return workspaces[0].size if workspaces else 0

    def _groups(self) -> dict[str, Group]:
        """Return the constants that operators read from TVM's structure, by operator."""
        used: dict[str, set[int]] = {}
        pools = [p for p in self.request.pools.values() if p.content is not None]
        if len(pools) > 1:
            raise NotUnpackedError(f"main uses {counted(len(pools), 'structure')} of constants")
        for name, operator in self.operators.items():
            for base, role in zip(operator.bases, operator.roles, strict=True):
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
                text = f"'{name}' reads {read} bytes of the constant at {offset}, {known[offset]} bytes"
                raise NotUnpackedError(text)
