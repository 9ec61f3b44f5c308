# SPDX-License-Identifier: Apache-2.0
"""The operators, steps and constants of the manifest for an unpacked main, with their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opwest.compiler.names import free_name, identifier
from opwest.frontends.mlf.draft import Argument, Constant, Operator, Step
from opwest.frontends.mlf.inner import ALIGN
from opwest.frontends.mlf.unpack.accesses import Role
from opwest.frontends.mlf.unpack.main_body import Call
from opwest.frontends.mlf.unpack.scratch import Group, Moved, limited
from opwest.frontends.mlf.unpack.tensors import Calls, Tensor, Use
from opwest.model.types.dtypes import DTYPES
from opwest.plan.problem import Share

if TYPE_CHECKING:
    from opwest.frontends.mlf.unpack.steps import Request


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
        self.tensor_of: dict[Use, Tensor] = {use: t for t in tensors for use in t.uses}
        self.names: dict[Use, str] = {}
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
                use = Use(step, number)
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

    def _argument(self, name: str, use: Use) -> Argument:
        tensor = self.tensor_of[use]
        assert tensor.size is not None
        shape = tensor.shape or (tensor.size // DTYPES[tensor.dtype].size,)
        return Argument(name, tensor.dtype, shape, tensor.directions[use], in_place=self._in_place(use, tensor))

    def _in_place(self, use: Use, tensor: Tensor) -> str | None:
        """Return the argument whose memory TVM's plan gives to a result."""
        taken = self.shared.get((use.step, tensor.name))
        if taken is None or tensor.kind != "own":
            return None
        parameters = self.request.functions[self.calls.calls[use.step].function].parameters
        numbers = [u.parameter for u, t in self.tensor_of.items() if u.step == use.step and t.name == taken]
        return identifier(parameters[numbers[0]].name, "p") if len(numbers) == 1 else None
