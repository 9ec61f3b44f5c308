# SPDX-License-Identifier: Apache-2.0
"""<model>_run as LLVM IR: the actions of the schedule in order."""

from __future__ import annotations

from opwest.model.types.model import Binding
from opwest.render.actions import Acquire, Action, Cache, Call, Copy, Release, Wait, actions
from opwest.render.llvm.lifecycle import EPERM, Code
from opwest.render.llvm.printer import ir_copy, ir_integer, ir_member, ir_number, ir_parameter, ir_phi, ir_result
from opwest.render.overlaps import is_inline, run_overlaps
from opwest.render.tables.layout import SLOT
from opwest.render.tables.tensors import resets_after_failure, workspace_struct
from opwest.render.tensors import external_rows


class Run(Code):
    """Run. Failures of one kind share a block, whose phi selects the failed step or device."""

    @property
    def abandoned_name(self) -> str:
        """The function that ends a failed run; C calls that of a model that streams."""
        return self.names.function("abandoned") if self.model.streams else "abandoned"

    @property
    def can_abandon(self) -> bool:
        """Whether a failed run must clean up devices."""
        hooks = any(device.has_hooks for device in self.model.devices)
        return hooks or any(isinstance(action, Cache) for action in actions(self.model, self.plan))

    def run(self, *, profiled: bool = False) -> str:
        """Return <model>_run(), or its variant with profiling."""
        self.profiled = profiled
        self.failed: list[tuple[str, int, str]] = []
        """Register of the code, step, block: operators that failed."""
        self.abandoned: list[tuple[str, str]] = []
        """Register of the code, block: devices that failed while being waited for."""
        self.unowned: list[tuple[str, str]] = []
        """The same, before the first step: states keep their content."""
        self.uncached: list[tuple[str, int, int, str]] = []
        """Register of the code, step, device, block: cache maintenance that failed."""
        self.cancelled: list[tuple[int, str]] = []
        """Step, block: where the run finds that it is cancelled."""
        self.has_hooks = any(device.has_hooks for device in self.model.devices)
        structures = {"inputs": "input", "outputs": "output", "devices": "device"}
        lines = self.null_checks(structures, unowned=True)
        lines += self._profile() + self._point(0, "begin")
        lines += self.clear_status() + self._check_tensors() + self.require_open("closed")
        lines += self.load_pools()
        lines += self._check_overlaps()
        lines += self._check_devices()
        if self.has_hooks:
            lines.append(f"  call void @opwest_devices_begin(ptr {self.device_set}, ptr %slots)")
        self.point = 0
        for number, action in enumerate(actions(self.model, self.plan)):
            self.point += not isinstance(action, Acquire | Release)
            lines += self._action(number, action)
        lines += [*self._point(0, "end"), "  ret i32 0"]
        lines += self._failures()
        lines += self.refused() + self.end(("closed", EPERM))
        verb = "run_profiled" if profiled else "run"
        parameters = [f"ptr %{name}" for name in ("inputs", "outputs", "workspace", "devices")]
        return self.function(verb, parameters, lines)

    def _profile(self) -> list[str]:
        """Address the measurements, after all other members of the workspace: its layout is independent of Kconfig."""
        if not self.profiled:
            return []
        return [ir_member("%measures", workspace_struct(self.model, self.plan, profiled=True), "%workspace", "profile")]

    def _point(self, number: int, verb: str) -> list[str]:
        """Begin or end a point."""
        if not self.profiled:
            return []
        table = self.names.function("points")
        return [f"  call void @opwest_profile_{verb}(ptr %measures, ptr @{table}, i32 signext {number})"]

    def _check_tensors(self) -> list[str]:
        """Check the caller's buffers, if any."""
        lines = []
        for role in ("input", "output"):
            for index, tensor in enumerate(external_rows(self.tensors, role)):
                register = f"%{role}s.{tensor['name']}"
                lines += self.load_member(f"{role}s", index, register)
                lines += self.usable(register, tensor["align"], role, index)
        for tensor in self.tensors:
            if tensor["reached"]:
                own = [row["name"] for row in external_rows(self.tensors, tensor["role"])]
                register = f"%{tensor['role']}s.{tensor['name']}"
                lines += [
                    f"  {register}.reached = call zeroext i1 @{tensor['reached']}(ptr {register})",
                    f"  {register}.far = xor i1 {register}.reached, true",
                    *self.refuse(f"{register}.far", tensor["role"], own.index(tensor["name"]), "unreached"),
                ]
        return lines

    def _check_overlaps(self) -> list[str]:
        """Check that the buffers of the caller do not overlap anything that is written."""
        subjects = run_overlaps(self.model, self.plan)
        if is_inline(subjects):
            return self.overlaps(subjects)
        return [
            "  %overlap = call signext i32 @opwest_buffers_overlap"
            "(ptr @buffer_sizes, ptr %inputs, ptr %outputs, ptr %workspace)",
            *self.branch_if_failed("%overlap", "overlapping", "%is.overlapping"),
        ]

    def _check_devices(self) -> list[str]:
        """Load the handles; devicetree handles must equal those of the opened workspace."""
        lines = []
        for index, device in enumerate(self.model.devices):
            lines += self.load_member("devices", index, f"%device.{device.name}")
            if device.handle:
                lines.append(f"  %other.{index} = icmp eq ptr %device.{device.name}, null")
            else:
                lines += [
                    *self.handle_of_slot(index),
                    f"  %kept.{index} = load ptr, ptr %slot.{index}",
                    f"  %other.{index} = icmp ne ptr %kept.{index}, %device.{device.name}",
                ]
            lines += self.refuse(f"%other.{index}", "device", index)
        return lines

    def _copy(self, number: int, action: Copy) -> list[str]:
        """Copy a tensor to a state."""
        source, place = self._address(f"%next.{number}", action.source, action.source.offset)
        return [
            *place,
            *self.place(f"%state.{number}", action.state),
            *self._point(self.point, "begin"),
            ir_copy(f"%copied.{number}", f"%state.{number}", source, str(action.size), self.bits),
            *self._point(self.point, "end"),
        ]

    def _address(self, register: str, binding: Binding, start: int) -> tuple[str, list[str]]:
        """Return the register with the address of a tensor from byte `start` on, and the lines that set it."""
        if binding.role == "buffer":
            return register, self.place(register, binding.name, start)
        is_constant = binding.role == "constant"
        whole = f"@{self.names.constant(binding.name)}" if is_constant else f"%{binding.role}s.{binding.name}"
        return (register, [f"  {register} = getelementptr i8, ptr {whole}, i32 {start}"]) if start else (whole, [])

    def _action(self, number: int, action: Action) -> list[str]:
        match action:
            case Acquire():
                arguments = f"i16 zeroext {ir_integer(action.step, 2)}"
                keeps = action.is_first and resets_after_failure(self.model)
                return self._hook(f"%acquired.{action.step}", "acquire", arguments, "unowned" if keeps else "abandon")
            case Release():
                return self._hook(f"%released.{action.index}", "release", f"i32 signext {action.index}")
            case Wait():
                return self._wait(number, action)
            case Cache():
                return self._cache(number, action)
            case Copy():
                return self._copy(number, action)
            case Call():
                return self._call(action)

    def _hook(self, register: str, verb: str, arguments: str, failure: str = "abandon") -> list[str]:
        """Call a function of the devices; a failure has been recorded."""
        (self.unowned if failure == "unowned" else self.abandoned).append((register, self.block))
        return [
            f"  {register} = call signext i32 @opwest_devices_{verb}(ptr {self.device_set}, ptr %slots, "
            f"ptr %status.at, {arguments})",
            *self.branch_if_failed(register, failure),
        ]

    def _wait(self, number: int, action: Wait) -> list[str]:
        self.abandoned.append((f"%waited.{number}", self.block))
        return [
            *self._point(self.point, "begin"),
            f"  %waited.{number} = call signext i32 @opwest_devices_sync(ptr {self.device_set}, ptr %slots, "
            f"ptr %status.at, i32 signext {action.index}, i32 signext {action.leave})",
            *self._point(self.point, "end"),
            *self.branch_if_failed(f"%waited.{number}", "abandon", f"%lost.{number}"),
        ]

    def _cache(self, number: int, action: Cache) -> list[str]:
        register, lines = self._address(f"%cache.{number}", action.binding, action.start)
        self.uncached.append((f"%maintained.{number}", action.step, action.index, self.block))
        return [
            *lines,
            *self._point(self.point, "begin"),
            f"  %maintained.{number} = call signext i32 @opwest_port_cache_{action.operation}(ptr {register}, "
            f"i32 signext {action.size})",
            *self._point(self.point, "end"),
            *self.branch_if_failed(f"%maintained.{number}", "uncached", f"%stale.{number}"),
        ]

    def _call(self, action: Call) -> list[str]:
        step = action.step
        lines = self._prepare(action)
        args = []
        for number, (argument, binding) in enumerate(zip(step.operator.args, step.bindings, strict=True)):
            if binding.role == "scalar":
                value = ir_number(binding.value, argument.type.dtype)
            else:
                value, place = self._address(f"%at.{step.index}.{number}", binding, binding.offset)
                lines += place
            if argument.scalar and binding.role != "scalar":
                place_of, value = value, f"%value.{step.index}.{number}"
                lines.append(f"  {value} = load {argument.type.dtype.llvm}, ptr {place_of}")
            args.append(f"{ir_parameter(argument)} {value}")
        if step.operator.takes_launch:
            lines.append(ir_member(f"%launch.{step.index}", SLOT, "%slots", "launch", index=action.index or 0))
            args.append(f"ptr %launch.{step.index}")
        elif step.operator.takes_device:
            args.append(f"ptr %device.{step.device}")
        head = f"%status.{step.index} = " if step.operator.returns_status else ""
        symbol = self.names.callee(step.operator)
        repeats = action.index is not None and step.operator.returns_status
        lines += self._point(self.point, "begin")
        lines += self._enter(f"call{step.index}") if repeats else []
        lines.append(f"  {head}call {ir_result(step.operator)} @{symbol}({', '.join(args)})")
        lines += self._repeat(action) if repeats else []
        lines += self._point(self.point, "end")
        if step.operator.returns_status:
            self.failed.append((f"%status.{step.index}", step.index, self.block))
            lines += self.branch_if_failed(f"%status.{step.index}", "failed", f"%failed.{step.index}")
        if action.launches and action.index is not None:
            lines.append(f"  call void @opwest_devices_launched(ptr %slots, i32 signext {action.index})")
        return lines

    def _prepare(self, action: Call) -> list[str]:
        """Prepare a launch, or check whether the run is cancelled."""
        index = action.step.index
        if action.use is not None:
            arguments = f"i32 signext {action.use}, i16 zeroext {ir_integer(index, 2)}"
            return self._hook(f"%prepared.{index}", "prepare", arguments)
        if not self.has_hooks:
            return []
        self.cancelled.append((index, self.block))
        return [
            ir_member(f"%cancel.at.{index}", SLOT, "%slots", "cancelled", index=0),
            # Volatile: LLVM makes an atomic load a call for processors without atomic instructions, such as Cortex-M0.
            f"  %cancel.{index} = load volatile i8, ptr %cancel.at.{index}, align 1",
            f"  %is.cancelled.{index} = icmp ne i8 %cancel.{index}, 0",
            *self.branch(f"%is.cancelled.{index}", "cancelled"),
        ]

    def _enter(self, label: str) -> list[str]:
        """Continue in a block that is entered again."""
        return [f"  br label %{label}", *self.begin(label)]

    def _repeat(self, action: Call) -> list[str]:
        """Call the operator again while its device has no room."""
        index = action.step.index
        status = f"%status.{index}"
        return [
            f"  {status}.bad = icmp ne i32 {status}, 0",
            f"  br i1 {status}.bad, label %again{index}, label %done{index}",
            f"again{index}:",
            f"  {status}.again = call zeroext i1 @opwest_devices_again(ptr {self.device_set}, ptr %slots, "
            f"ptr %status.at, i32 signext {action.index}, i32 signext {status})",
            f"  br i1 {status}.again, label %call{index}, label %done{index}",
            *self.begin(f"done{index}"),
        ]

    def _failures(self) -> list[str]:
        """Return the blocks for failures: they record the failure and, if devices have hooks, clean up."""
        lines: list[str] = []
        if not is_inline(run_overlaps(self.model, self.plan)):
            lines += [
                "overlapping:",
                "  %overlap.high = lshr i32 %overlap, 16",
                "  %overlap.kind = trunc i32 %overlap.high to i8",
                "  %overlap.index = trunc i32 %overlap to i16",
                "  %overlap.code = tail call signext i32 @opwest_status_invalid(ptr %status.at, "
                "i8 zeroext %overlap.kind, i16 zeroext %overlap.index)",
                "  ret i32 %overlap.code",
            ]
        if self.failed:
            lines += [
                "failed:",
                ir_phi("%code", "i32", ((code, block) for code, _, block in self.failed)),
                ir_phi("%step", "i16", ((ir_integer(step, 2), block) for _, step, block in self.failed)),
                *(self.reset_state() if resets_after_failure(self.model) and not self.can_abandon else []),
                f"  %result = {'call' if self.can_abandon else 'tail call'} signext i32 @opwest_status_failed"
                f"(ptr %status.at, ptr {self.model_name}, i16 zeroext %step, i32 signext %code)",
                *(self._abandon("%result") if self.can_abandon else ["  ret i32 %result"]),
            ]
        if self.cancelled:
            lines += [
                "cancelled:",
                ir_phi("%cancel.step", "i16", ((ir_integer(step, 2), block) for step, block in self.cancelled)),
                "  %cancel.code = call signext i32 @opwest_status_cancelled(ptr %status.at, i16 zeroext %cancel.step)",
                *self._abandon("%cancel.code"),
            ]
        if self.uncached:
            lines += [
                "uncached:",
                ir_phi("%cache.code", "i32", ((code, block) for code, _, _, block in self.uncached)),
                ir_phi("%cache.step", "i16", ((ir_integer(step, 2), block) for _, step, _, block in self.uncached)),
                ir_phi("%cache.device", "i32", ((str(device), block) for _, _, device, block in self.uncached)),
                *self.device_name("%name", "%cache.device"),
                "  %cache.index = trunc i32 %cache.device to i8",
                self.hook_failed(
                    "%cache.result = call", "%name", "cache", "%cache.index", "%cache.step", "%cache.code"
                ),
                *self._abandon("%cache.result"),
            ]
        for code, _ in self.unowned:
            lines += [
                "unowned:",
                f"  %unowned.open = call zeroext i1 @opwest_devices_abandon(ptr {self.device_set}, ptr %slots)",
                f"  ret i32 {code}",
            ]
        if self.abandoned:
            lines += [
                "abandon:",
                ir_phi("%lost.code", "i32", self.abandoned),
                *self._abandon("%lost.code"),
            ]
        return lines

    def abandon_function(self) -> list[str]:
        """Return the end of a failed run, as a separate function as in C."""
        if not self.can_abandon:
            return []
        lines = [
            f"define {'' if self.model.streams else 'internal '}signext i32 @{self.abandoned_name}"
            "(i32 signext %rc, ptr %workspace) noinline cold {",
            *self.field("%slots", "slots"),
            *self.field("%opened.at", "opened"),
            f"  %open = call zeroext i1 @opwest_devices_abandon(ptr {self.device_set}, ptr %slots)",
            # Not earlier: launched devices may write the state until they have ended.
            *(self.reset_state() if resets_after_failure(self.model) else []),
            "  %open.byte = zext i1 %open to i8",
            "  store i8 %open.byte, ptr %opened.at",
            "  ret i32 %rc",
            "}",
        ]
        return ["\n".join(lines)]

    def _abandon(self, code: str) -> list[str]:
        return [
            f"  {code}.end = tail call signext i32 @{self.abandoned_name}(i32 signext {code}, ptr %workspace)",
            f"  ret i32 {code}.end",
        ]
