# SPDX-License-Identifier: Apache-2.0
"""<model>_open and <model>_close as LLVM IR, and the parts that all functions of the module share."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.model.checks.firmware import checked_steps
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Buffer, Model
from opwest.plan.memory import MemoryPlan
from opwest.plan.problem import round_up
from opwest.render.devices import first_incoherent
from opwest.render.llvm.printer import Printer, ir_copy, ir_integer, ir_member, ir_phi, ir_struct, model_name
from opwest.render.overlaps import WORKSPACE, Memory, Subject, open_overlaps, pool_memory
from opwest.render.tables import layout
from opwest.render.tables.tensors import saved_size, used_pools, workspace_struct
from opwest.render.tables.types import StructValue
from opwest.render.tensors import interface_rows

# ISO C and POSIX leave these values to the C library; all those that Zephyr supports agree.
EPERM, EBUSY, ENODEV, EINVAL = 1, 16, 19, 22
NO_STEP = ir_integer(layout.NO_STEP.value, 2)
_CLEAR = StructValue(
    layout.STATUS,
    code=0,
    step=layout.NO_STEP.value,
    hook=layout.HOOK.code("operator"),
    device=layout.STATUS_NO_DEVICE.value,
    argument=layout.NO_ARGUMENT.value,
)
"""OPWEST_STATUS_INIT."""


class Code:
    """Writes functions. Registers are numbered by name, so that they are unique."""

    def __init__(self, model: Model, plan: MemoryPlan, pointer_bits: int) -> None:
        self.model = model
        self.plan = plan
        self.names = CNames(model.name)
        self.bits = pointer_bits
        self.pools = used_pools(model, plan)
        self.workspace = workspace_struct(model, plan)
        self.model_name = model_name(self.names)
        self.tensors = interface_rows(model)
        self.device_set = f"@{self.names.function('device_set')}"
        self.blocks = 0
        self.block = "entry"
        """The current block."""
        self.refuses_owned = False
        """Whether the function branches to `owned`."""
        self.refusals: dict[str, list[tuple[str, int, str]]] = {}
        """Kind and index of the argument, block: the branches to `invalid` and to `unreached`."""

    def field(self, register: str, *path: str) -> list[str]:
        """Address a member of the workspace."""
        return [ir_member(register, self.workspace, "%workspace", *path)]

    def status_and_slots(self) -> list[str]:
        """Address the argument of the device functions."""
        lines = self.field("%status.at", "status")
        return lines + (self.field("%slots", "slots") if self.model.devices else [])

    def clear_status(self) -> list[str]:
        """Clear the latest failure."""
        return [f"  store {ir_struct(layout.STATUS)} {Printer().value(layout.STATUS, _CLEAR)}, ptr %status.at"]

    def branch(self, condition: str, target: str) -> list[str]:
        """Branch to `target` if the condition holds, else continue in a new block."""
        self.blocks += 1
        label = f"next{self.blocks}"
        return [f"  br i1 {condition}, label %{target}, label %{label}", *self.begin(label)]

    def branch_if_failed(self, code: str, target: str, register: str = "") -> list[str]:
        """Branch to `target` if a code is not 0; `register` is for the comparison, by default named after the code."""
        register = register or f"{code}.failed"
        return [f"  {register} = icmp ne i32 {code}, 0", *self.branch(register, target)]

    def start(self) -> None:
        """Begin the numbers of blocks anew, for another function."""
        self.blocks = 0
        self.block = "entry"

    def begin(self, label: str) -> list[str]:
        """Begin a block."""
        self.block = label
        return [f"{label}:"]

    def refuse(self, condition: str, kind: str, index: int, label: str = "invalid") -> list[str]:
        """Branch to `label` if the condition holds; `kind` and `index` identify the argument."""
        self.refusals.setdefault(label, []).append((kind, index, self.block))
        return self.branch(condition, label)

    def null_checks(self, structures: dict[str, str], *, unowned: bool = False) -> list[str]:
        """Check that the workspace and other structures are not NULL: the kind of argument by register.

        With `unowned`, the workspace may own no device; the mark of a workspace in use includes that.
        """
        lines = [] if self.model.checks.busy else self.null_workspace()
        lines += self.status_and_slots() + (self._unowned() if unowned and not self.model.checks.busy else [])
        for register, kind in structures.items():
            lines.append(f"  %null.{register} = icmp eq ptr %{register}, null")
            lines += self.refuse(f"%null.{register}", kind, layout.NO_ARGUMENT.value)
        return lines

    def _unowned(self) -> list[str]:
        """Branch to `owned` if the workspace owns a device: opwest_devices_owned()."""
        lines: list[str] = []
        for index, device in enumerate(self.model.devices):
            if device.has_hooks:
                lines += [
                    ir_member(f"%owner.at.{index}", layout.SLOT, "%slots", "owner", index=index),
                    # Volatile: LLVM makes an atomic load a call for processors without atomic instructions.
                    f"  %owner.{index} = load volatile i{self.bits}, ptr %owner.at.{index}",
                    f"  %is.owned.{index} = icmp ne i{self.bits} %owner.{index}, 0",
                    *self.branch(f"%is.owned.{index}", "owned"),
                ]
        self.refuses_owned = bool(lines)
        return lines

    def null_workspace(self) -> list[str]:
        """Branch to `unset` if the workspace is NULL."""
        return ["  %null.workspace = icmp eq ptr %workspace, null", *self.branch("%null.workspace", "unset")]

    def refused(self) -> list[str]:
        """Return the blocks for invalid arguments, a workspace that is NULL, and one that owns a device."""
        ends = [*([] if self.model.checks.busy else [("unset", EINVAL)]), *[("owned", EBUSY)] * self.refuses_owned]
        lines = self.end(*ends) if ends else []
        self.refuses_owned = False
        for label, branches in self.refusals.items():
            lines += [
                f"{label}:",
                ir_phi(f"%{label}.kind", "i8", ((layout.HOOK.code(kind), block) for kind, _, block in branches)),
                ir_phi(f"%{label}.index", "i16", ((ir_integer(index, 2), block) for _, index, block in branches)),
                f"  %{label}.code = tail call signext i32 @opwest_status_{label}(ptr %status.at, "
                f"i8 zeroext %{label}.kind, i16 zeroext %{label}.index)",
                f"  ret i32 %{label}.code",
            ]
        return lines

    def usable(self, register: str, align: int, kind: str, index: int) -> list[str]:
        """Check that a pointer is not NULL, and aligned."""
        lines = [f"  {register}.null = icmp eq ptr {register}, null"]
        lines += self.refuse(f"{register}.null", kind, index)
        if align > 1:
            lines += [
                f"  {register}.address = ptrtoint ptr {register} to i{self.bits}",
                f"  {register}.rest = and i{self.bits} {register}.address, {align - 1}",
                f"  {register}.off = icmp ne i{self.bits} {register}.rest, 0",
                *self.refuse(f"{register}.off", kind, index),
            ]
        return lines

    def overlaps(self, subjects: list[Subject]) -> list[str]:
        """Refuse ranges that overlap others. The pools and the buffers are loaded."""
        lines = []
        for subject in subjects:
            memory = subject.memory
            for number, other in enumerate(subject.others):
                register = f"%overlap.{memory.role}.{memory.index}.{number}"
                lines += self.overlap(register, memory, other)
                lines += self.refuse(register, memory.role, memory.index)
        return lines

    def overlap(self, register: str, memory: Memory, other: Memory) -> list[str]:
        """Set a register to whether two ranges overlap: opwest_overlap() of opwest/status.h."""
        (start, size), (begin, room) = self._range(memory), self._range(other)
        bits = f"i{self.bits}"
        return [
            f"  {register}.a = ptrtoint ptr {start} to {bits}",
            f"  {register}.b = ptrtoint ptr {begin} to {bits}",
            f"  {register}.apart = sub {bits} {register}.a, {register}.b",
            f"  {register}.less = sub {bits} {size}, 1",
            f"  {register}.shifted = add {bits} {register}.apart, {register}.less",
            f"  {register}.both = add {bits} {register}.less, {room}",
            f"  {register} = icmp ult {bits} {register}.shifted, {register}.both",
        ]

    def _range(self, memory: Memory) -> tuple[str, str]:
        """Return the address and the size of a range."""
        if memory.size is None:
            return "%workspace", self.workspace_size()
        if memory.role == "data":
            return "%data", str(memory.size)
        register = f"%pool.{memory.name}" if memory.role == "pool" else f"%{memory.role}s.{memory.name}"
        return register, str(memory.size)

    def workspace_size(self) -> str:
        """Return the size of the workspace's structure without measurements, a constant expression."""
        end = f"ptr getelementptr ({ir_struct(self.workspace)}, ptr null, i32 1)"
        return f"ptrtoint ({end} to i{self.bits})"

    def load_pools(self) -> list[str]:
        """Load the addresses of all pools; LLVM drops unused ones."""
        lines = []
        for pool in self.pools:
            lines += self.field(f"%pool.at.{pool.name}", pool.member)
            lines.append(f"  %pool.{pool.name} = load ptr, ptr %pool.at.{pool.name}")
        return lines

    def place(self, register: str, buffer: str, start: int = 0) -> list[str]:
        """Address a buffer of the workspace from byte `start` on."""
        pool, offset = self.plan.place(buffer)
        return [f"  {register} = getelementptr i8, ptr %pool.{pool}, i32 {offset + start}"]

    def load_opened(self) -> list[str]:
        """Load whether the workspace is open."""
        return [*self.field("%opened.at", "opened"), "  %opened = load i8, ptr %opened.at"]

    def require_open(self, target: str) -> list[str]:
        """Branch to `target` if the workspace is not open."""
        return [*self.load_opened(), "  %is.closed = icmp eq i8 %opened, 0", *self.branch("%is.closed", target)]

    def load_member(self, struct: str, index: int, register: str) -> list[str]:
        """Load a pointer of a structure of pointers."""
        return [
            f"  {register}.at = getelementptr ptr, ptr %{struct}, i32 {index}",
            f"  {register} = load ptr, ptr {register}.at",
        ]

    def handle_of_slot(self, index: int) -> list[str]:
        """Address the handle in a slot."""
        return [ir_member(f"%slot.{index}", layout.SLOT, "%slots", "dev", index=index)]

    def device_name(self, register: str, index: int | str) -> list[str]:
        """Load a device's name; `index` is a number or a register."""
        table = f"@{self.names.function('device_table')}"
        return [
            ir_member(f"{register}.at", layout.DEVICE, table, "name", index=index),
            f"  {register} = load ptr, ptr {register}.at",
        ]

    def hook_failed(self, call: str, name: str, hook: str, device: str, step: str, code: str) -> str:
        """Record a failed hook of a device: registers or numbers of its name, its index, the step and the errno."""
        return (
            f"  {call} signext i32 @opwest_status_hook_failed(ptr %status.at, ptr {self.model_name}, ptr {name}, "
            f"i32 signext {layout.HOOK.code(hook)}, i8 zeroext {device}, i16 zeroext {step}, i32 signext {code})"
        )

    def reset_state(self) -> list[str]:
        """Set the states to their initial content."""
        if not self.model.states:
            return []
        return [f"  call void @opwest_state_reset(ptr @{self.names.function('state')}, ptr %workspace)"]

    def end(self, *codes: tuple[str, int]) -> list[str]:
        """Write the blocks that return an errno."""
        lines = []
        for label, code in codes:
            lines += [f"{label}:", f"  ret i32 {-code}"]
        return lines

    def function(self, verb: str, parameters: Sequence[str], lines: list[str]) -> str:
        """Return a function of the public header; with the check `busy` it calls the one with `lines`."""
        self.start()
        self.refusals = {}
        public = f"define signext i32 @{self.names.function(verb)}({', '.join(parameters)}) {{"
        if not self.model.checks.busy:
            return "\n".join([public, "entry:", *lines, "}"])
        own = f"define internal signext i32 @{verb}_workspace({', '.join(parameters)}) {{"
        alone = self._alone(verb, parameters)
        return "\n".join([own, "entry:", *lines, "}", "", public, "entry:", *alone, "}"])

    def _alone(self, verb: str, parameters: Sequence[str]) -> list[str]:
        """Call a function unless another one of the workspace runs."""
        lines = [
            *self.null_workspace(),
            *self.field("%running", "running"),
            "  %is.alone = call zeroext i1 @opwest_port_take(ptr %running)",
            "  br i1 %is.alone, label %alone, label %busy",
            "alone:",
            f"  %code = call signext i32 @{verb}_workspace({', '.join(parameters)})",
            "  call void @opwest_port_give(ptr %running)",
            "  ret i32 %code",
            *self.end(("unset", EINVAL), ("busy", EBUSY)),
        ]
        self.start()
        return lines


class Lifecycle(Code):
    """Open and close."""

    def open(self) -> str:
        """Return <model>_open()."""
        lines = self.null_checks({"devices": "device"}) + self.load_opened()
        lines.append("  %is.open = icmp ne i8 %opened, 0")
        lines += self.branch("%is.open", "already")
        lines += self.clear_status() + self.load_pools()
        for index, pool in enumerate(self.pools):
            lines += self.usable(f"%pool.{pool.name}", pool.align, "pool", index)
        lines += self.overlaps(open_overlaps(self.model, self.plan))
        checks, endings = self._checks()
        lines += checks
        if self.model.devices:
            activation, more = self._activate()
            lines += activation
            endings += more
        else:
            lines += self._take()
        copies, more = self._copies()
        lines += copies + self._publish() + self.reset_state()
        lines += ["  store i8 1, ptr %opened.at", "  ret i32 0", *endings, *more]
        busy = self.end(("busy", EBUSY)) if self.model.stateful else []
        lines += [*self._already(), *self.refused(), *busy]
        return self.function("open", ["ptr %workspace", "ptr %devices"], lines)

    def _checks(self) -> tuple[list[str], list[str]]:
        """Return the calls of the operators' checks, and the block for a failed one."""
        lines: list[str] = []
        failed: list[tuple[str, int, str]] = []
        for index, (symbol, step) in enumerate(checked_steps(self.model).items()):
            register = f"%check.{index}"
            lines.append(f"  {register} = call signext i32 @{self.names.operator(symbol)}()")
            failed.append((register, step, self.block))
            lines += self.branch_if_failed(register, "unfit")
        if not failed:
            return [], []
        return lines, [
            "unfit:",
            ir_phi("%unfit.code", "i32", ((code, block) for code, _, block in failed)),
            ir_phi("%unfit.step", "i16", ((ir_integer(step, 2), block) for _, step, block in failed)),
            "  %unfit.result = tail call signext i32 @opwest_status_failed"
            f"(ptr %status.at, ptr {self.model_name}, i16 zeroext %unfit.step, i32 signext %unfit.code)",
            "  ret i32 %unfit.result",
        ]

    def _activate(self) -> tuple[list[str], list[str]]:
        """Return the checks and activation of devices, and the blocks for their failures."""
        lines: list[str] = []
        endings: list[str] = []
        for index, device in enumerate(self.model.devices):
            lines += self.load_member("devices", index, f"%device.{device.name}") + self.handle_of_slot(index)
            if not device.handle:
                lines.append(f"  store ptr %device.{device.name}, ptr %slot.{index}")
                continue
            lines += [
                f"  store ptr null, ptr %slot.{index}",
                f"  %is.absent.{device.name} = icmp eq ptr %device.{device.name}, null",
                *self.branch(f"%is.absent.{device.name}", f"absent.{device.name}"),
            ]
            endings += [
                f"absent.{device.name}:",
                *self.device_name(f"%name.{index}", index),
                self.hook_failed(
                    f"%absent.code.{index} = tail call",
                    f"%name.{index}",
                    "ready",
                    ir_integer(index, 1),
                    NO_STEP,
                    str(-ENODEV),
                ),
                f"  ret i32 %absent.code.{index}",
            ]
        lines += self._take()
        lines += [
            "  %activated = call signext i32 @opwest_devices_activate"
            f"(ptr {self.device_set}, ptr %slots, ptr %status.at)",
            *self.branch_if_failed("%activated", "inactive", "%is.inactive"),
        ]
        return lines, [*endings, "inactive:", *self._give(), "  ret i32 %activated"]

    def _take(self) -> list[str]:
        """Branch to `busy` if operators have state and another workspace is open."""
        if not self.model.stateful:
            return []
        lines = [
            "  %is.free = call zeroext i1 @opwest_port_take(ptr @in_use)",
            "  %is.busy = xor i1 %is.free, true",
        ]
        return lines + self.branch("%is.busy", "busy")

    def _give(self) -> list[str]:
        """Permit another workspace to be opened."""
        return ["  call void @opwest_port_give(ptr @in_use)"] if self.model.stateful else []

    def _copies(self) -> tuple[list[str], list[str]]:
        """Return the copies of constants into the workspace, and the block for a failed flush."""
        lines: list[str] = []
        failures: list[tuple[str, int, str]] = []
        for buffer in self.model.buffers:
            if buffer.role == "constant":
                register = f"%constant.{buffer.name}"
                lines += self.place(register, buffer.name)
                source = f"@{self.names.constant(buffer.name)}"
                lines.append(ir_copy(f"{register}.copied", register, source, str(buffer.type.size), self.bits))
                lines += self._flushed(register, buffer, failures)
        if not failures:
            return lines, []
        return lines, [
            "unflushed:",
            ir_phi("%flush.code", "i32", ((code, block) for code, _, block in failures)),
            ir_phi("%flush.device", "i32", ((index, block) for _, index, block in failures)),
            *self.device_name("%flush.name", "%flush.device"),
            "  %flush.index = trunc i32 %flush.device to i8",
            self.hook_failed("%flush.result = call", "%flush.name", "cache", "%flush.index", NO_STEP, "%flush.code"),
            f"  %undone = call signext i32 @opwest_devices_deactivate(ptr {self.device_set}, ptr %slots, ptr null)",
            *self._give(),
            "  ret i32 %flush.result",
        ]

    def _flushed(self, register: str, buffer: Buffer, failures: list[tuple[str, int, str]]) -> list[str]:
        pool = self.plan.place(buffer.name)[0]
        line = next(p.cache_line for p in self.model.pools if p.name == pool)
        if not line or not buffer.incoherent:
            return []
        size = round_up(buffer.type.size, line)
        failures.append((f"{register}.flushed", first_incoherent(self.model, buffer.name), self.block))
        return [
            f"  {register}.flushed = call signext i32 @opwest_port_cache_flush(ptr {register}, i32 signext {size})",
            *self.branch_if_failed(f"{register}.flushed", "unflushed", f"{register}.failed"),
        ]

    def _publish(self) -> list[str]:
        """Write the addresses of the inputs and outputs in the workspace."""
        lines = []
        for tensor in self.tensors:
            if tensor["placed"]:
                register = f"%{tensor['role']}.{tensor['name']}"
                lines += self.place(register, tensor["name"])
                lines += self.field(f"{register}.at", tensor["role"], tensor["member"])
                lines.append(f"  store ptr {register}, ptr {register}.at")
        return lines

    def close(self) -> str:
        """Return <model>_close()."""
        lines = self.null_checks({"devices": "device"}, unowned=True) + self.require_open("already")
        lines += ["  store i8 0, ptr %opened.at", *self.clear_status()]
        if self.model.devices:
            lines += [
                "  %closed = tail call signext i32 @opwest_devices_deactivate"
                f"(ptr {self.device_set}, ptr %slots, ptr %status.at)",
                *self._give(),
                "  ret i32 %closed",
            ]
        else:
            lines += [*self._give(), "  ret i32 0"]
        lines += [*self._already(), *self.refused()]
        return self.function("close", ["ptr %workspace", "ptr %devices"], lines)

    def state_functions(self) -> list[str]:
        """Return <model>_reset(), _save() and _restore(); none without states."""
        return [self._state_function(verb) for verb in ("reset", "save", "restore")] if self.model.states else []

    def _state_function(self, verb: str) -> str:
        state = f"ptr @{self.names.function('state')}, ptr %workspace"
        checks = self.null_checks({}, unowned=True) + self.require_open("closed")
        parameters = ["ptr %workspace"]
        inside: list[str] = []
        if verb == "reset":
            call = [*self.reset_state(), "  ret i32 0"]
        else:
            parameters += ["ptr %data", "i32 signext %size"]
            inside = self._inside() if self.model.checks.buffers else []
            call = [
                f"  %code = tail call signext i32 @opwest_state_{verb}({state}, ptr %data, i32 signext %size)",
                "  ret i32 %code",
            ]
        ends = [("closed", EPERM), *([("inside", EINVAL)] if inside else [])]
        return self.function(verb, parameters, [*checks, *inside, *call, *self.refused(), *self.end(*ends)])

    def _inside(self) -> list[str]:
        """Branch to `inside` if saved states are in a pool or in the workspace."""
        lines = self.load_pools()
        for number, other in enumerate((*pool_memory(self.model, self.plan), WORKSPACE)):
            register = f"%overlap.{number}"
            lines += self.overlap(register, Memory("data", 0, "", saved_size(self.model)), other)
            lines += self.branch(register, "inside")
        return lines

    @staticmethod
    def _already() -> list[str]:
        return [
            "already:",
            "  %already.code = tail call signext i32 @opwest_status_already()",
            "  ret i32 %already.code",
        ]

    def cancel(self) -> list[str]:
        """Return <model>_cancel(); none without accelerators."""
        if not any(device.has_hooks for device in self.model.devices):
            return []
        lines = [
            f"define signext i32 @{self.names.function('cancel')}(ptr %workspace) {{",
            "entry:",
            *self.null_workspace(),
            *self.field("%slots", "slots"),
            f"  call void @opwest_devices_cancel(ptr {self.device_set}, ptr %slots)",
            "  ret i32 0",
            *self.end(("unset", EINVAL)),
            "}",
        ]
        self.start()
        return ["\n".join(lines)]
