# SPDX-License-Identifier: Apache-2.0
"""The form of the models of the fault injection.

A step is "operator device arguments -> result"; actions are those of run in order: a step's number,
`wait MEMBER [JOBS TO LEAVE]`, or cache maintenance as `flush|clean|drop STEP MEMBER`. The oracle adds acquisitions and
releases.

The test restores other contents of states than the first ones after every open.
"""

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from accelerators_support import PROGRAMS, function
from device_models import write_manifest

ALL_HOOKS = 0b111_1111_1111
ELEMENTS = 8
INPUT = [7, -3, 1000003, 0, 2**31 - 1, -(2**31), 12345, -1]


@dataclass(frozen=True)
class Member:
    """A member of the context and its handle in the test."""

    name: str
    handle: int | None
    kind: str = "accelerator"
    program: str | None = None
    timeout: int | None = None
    coherent: bool = False
    own_timeout: int | None = None
    depth: int | None = None
    switching: str | None = None
    power: str | None = None


@dataclass(frozen=True)
class Kept:
    first: list[int]
    next: str | None = None

    @property
    def moved(self) -> list[int]:
        """The content that the test restores."""
        return [3 - 7 * value for value in self.first]


class Holds:
    """The actions of run with `acquire HANDLE STEP` and `release HANDLE`.

    The intervals in which a run owns its devices follow from the hand-written actions of a subject and devices.h.
    """

    def __init__(self, subject: "Subject") -> None:
        self.subject = subject
        groups = self._groups()
        self.first, self.last = {}, {}
        for number in range(len(subject.steps)):
            self._use(subject.step(number)[1], number, number + 1)
        for before, (waits, _) in enumerate(groups):
            for action in waits:
                words = action.split()
                if words[0] == "wait":
                    self._use(words[1], before, before)
        self.acquired = self._acquired()
        self.actions = []
        for before, (waits, others) in enumerate(groups):
            self.actions += waits
            self.actions += [f"release {handle}" for handle in self._released(before)]
            self.actions += [f"acquire {h} {before}" for h, at in sorted(self.acquired.items()) if at == before]
            self.actions += others

    def _use(self, device: str | None, first: int, last: int) -> None:
        if device and self.subject.members[self.subject.index(device)].kind == "accelerator":
            self.first[device] = min(self.first.get(device, first), first)
            self.last[device] = max(self.last.get(device, last), last)

    def _groups(self) -> list[tuple[list[str], list[str]]]:
        """Return, before every step and at the end, the waits with what follows them, and the other actions."""
        groups: list[tuple[list[str], list[str]]] = [([], [])]
        for action in self.subject.actions:
            words = action.split()
            waits, others = groups[-1]
            if words[0] == "wait" or (words[0] == "drop" and waits and not others):
                waits.append(action)
            elif words[0] == "drop":  # of the synchronous step before it
                groups[-2][1].append(action)
            else:
                others.append(action)
                if words[0].isdigit():
                    groups.append(([], []))
        return groups

    def _handle(self, device: str) -> int:
        return self.subject.members[self.subject.index(device)].handle

    def _end(self, handle: int) -> int:
        return max(last for device, last in self.last.items() if self._handle(device) == handle)

    def _acquired(self) -> dict[int, int]:
        """Return the steps that acquire the handles: none below one that is owned at that time."""
        found: dict[int, int] = {}
        for device, first in self.first.items():
            handle = self._handle(device)
            found[handle] = min(found.get(handle, first), first)
        before: dict[int, int] = {}
        while before != found:
            before = dict(found)
            for low, high in itertools.combinations(sorted(found), 2):
                if found[high] < found[low] < self._end(high):
                    found[low] = found[high]
        return found

    def _released(self, before: int) -> list[int]:
        listed = [m.name for m in self.subject.members if self.last.get(m.name) == before]
        final = {self._handle(device): device for device in listed if self._end(self._handle(device)) == before}
        return [self._handle(device) for device in listed if final.get(self._handle(device)) == device]


@dataclass(frozen=True)
class Subject:
    name: str
    members: tuple[Member, ...]
    steps: tuple[str, ...]
    actions: tuple[str, ...]
    outputs: tuple[str, ...] = ("y",)
    external: tuple[str, ...] = ()
    constants: dict[str, list[int]] = field(default_factory=dict)
    line: int | None = None
    opening: tuple[str, ...] = ()
    """Cache maintenance of open: `flush MEMBER`."""
    states: dict[str, Kept] = field(default_factory=dict)
    views: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Views of states, of one tensor's size: the state and the offset."""
    programs: dict[int, str] = field(default_factory=dict)
    """The programs of steps, by number, that differ from the device's."""
    stream: bool = False
    stateful: bool = False
    """Whether one workspace at a time can be open: after each failure open must succeed."""

    def program(self, number: int) -> str | None:
        _, device, _, _ = self.step(number)
        return self.programs.get(number, self.members[self.index(device)].program) if device else None

    def index(self, member: str) -> int:
        return self._indices[member]

    def step(self, number: int) -> tuple[str, str | None, list[str], str]:
        """Return operator, device, arguments and result of a step."""
        return self._steps[number]

    @cached_property
    def _steps(self) -> list[tuple[str, str | None, list[str], str]]:
        found = []
        for step in self.steps:
            words = step.split()
            arrow = words.index("->")
            device = words[1] if words[1] in self._indices else None
            found.append((words[0], device, words[2 if device else 1 : arrow], words[arrow + 1]))
        return found

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {member.name: index for index, member in enumerate(self.members)}

    @cached_property
    def holds(self) -> Holds:
        return Holds(self)

    @property
    def resets(self) -> bool:
        """Whether states have their first content after a failed run."""
        return any(state.next is None for state in self.states.values())

    def expected(self, states: dict[str, list[int]], x: list[int]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """Return the outputs and the states after a successful run."""
        tensors = {"x": x, **self.constants, **states}
        tensors = {name: list(values) for name, values in tensors.items()}

        def place(name: str) -> tuple[list[int], int]:
            whole, at = self.views.get(name, (name, 0))
            return tensors.setdefault(whole, [0] * ELEMENTS), at

        for number in range(len(self.steps)):
            _, _, names, y = self.step(number)
            a, b = (values[at : at + ELEMENTS] for values, at in map(place, names))
            values = [(3 * a[i] + 5 * b[(i + 1) % ELEMENTS] + number) % 2**32 for i in range(ELEMENTS)]
            into, at = place(y)
            into[at : at + ELEMENTS] = [v - 2**32 if v >= 2**31 else v for v in values]
        after = {name: tensors[state.next or name] for name, state in self.states.items()}
        return {name: tensors[name] for name in self.outputs}, after

    def contents(self) -> dict[str, dict[str, list[int]]]:
        """Return the contents of the states by the names that the oracle uses."""
        found = {"first": {n: k.first for n, k in self.states.items()}}
        found["moved"] = {n: k.moved for n, k in self.states.items()}
        return found | {f"{name}+1": self.expected(values, INPUT)[1] for name, values in found.items()}

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        (folder / "steps.c").write_bytes((PROGRAMS / "steps.c").read_bytes())
        tensor = {"dtype": "int32", "shape": [ELEMENTS]}
        args = [{"name": "step", "dtype": "int32", "scalar": True}, {"name": "a", **tensor}, {"name": "b", **tensor}]
        args.append({"name": "y", **tensor, "direction": "out"})
        operators = {
            "cpu": {"args": args},
            "cpu_void": {"args": args, "returns": "void"},
            "npu": {"args": args, "device": {}},
            "launch": {"args": args, "device": {"launch": True}, "async": True},
            "vendor": {"args": args, "device": {"handle": "struct vendor_npu *"}},
        }
        devices: dict[str, Any] = {}
        for member in self.members:
            entry: dict[str, Any] = {"devicetree": {"nodelabel": member.name}}
            if member.kind == "foreign":
                entry = {"handle": {"type": "struct vendor_npu *", "header": "vendor.h", "expression": "&vendor"}}
            elif member.kind == "plain":
                entry["driver"] = "none"
            if member.program:
                entry["program"] = f"{member.program}.bin"
            keys = {
                "timeout_ms": member.timeout,
                "own_timeout_ms": member.own_timeout,
                "queue_depth": member.depth,
                "switching": member.switching,
                "power": member.power,
            }
            keys = {key: value for key, value in keys.items() if value is not None}
            devices[member.name] = {**entry, **keys, "coherent": member.coherent}
        for name, values in (self.constants | {name: state.first for name, state in self.states.items()}).items():
            (folder / f"{name}.bin").write_bytes(b"".join(v.to_bytes(4, "little", signed=True) for v in values))
        states = {
            name: {"dtype": "int32", "shape": [len(state.first)], "initial": {"file": f"{name}.bin"}}
            | ({"next": state.next} if state.next else {})
            for name, state in self.states.items()
        }
        views = {name: {"view_of": of, "offset": at, "shape": [ELEMENTS]} for name, (of, at) in self.views.items()}
        interface = {name: {**tensor, **({"external": True} if name in self.external else {})} for name in "xyz"}
        if self.stream:
            interface["x"]["external"] = False
        steps = []
        for number in range(len(self.steps)):
            operator, device, (a, b), y = self.step(number)
            steps.append({"call": operator, **({"device": device} if device else {}), "args": [number, a, b, y]})
            if number in self.programs:
                steps[-1]["program"] = f"{self.programs[number]}.bin"
        for program in {m.program for m in self.members if m.program} | set(self.programs.values()):
            (folder / f"{program}.bin").write_text(program)
        manifest = {
            "version": 1,
            "model": self.name,
            "memory": {"sram": {"cache_line": self.line} if self.line else {}},
            "devices": devices,
            "operators": operators,
            "constants": {name: {"file": f"{name}.bin", "pool": "sram"} for name in self.constants},
            "run": {
                "stream": self.stream,
                "inputs": {"x": interface["x"]},
                "outputs": {name: interface[name] for name in self.outputs},
                "state": states,
                "tensors": views,
                "steps": steps,
            },
        }
        state = ", stateful: true" if self.stateful else ""
        return write_manifest(folder, manifest, f"files: [steps.c]{state}")

    def glue(self, placed: set[str]) -> str:
        """Return C that opens, runs and closes this model for journal.c."""
        name, upper = self.name, self.name.upper()
        contents = self.contents()
        starts = [self.expected(contents[start], INPUT)[0] for start in ("first", "moved")]
        values = {"x": [INPUT], **{y: [outputs[y] for outputs in starts] for y in self.outputs}}
        lines = [f"#include <{name}.h>", f"{upper}_WORKSPACE_DEFINE({name}_workspace);"]
        lines += [f"static struct {name}_devices {name}_context;"]
        for tensor, numbers in values.items():
            lines.append(f"static const int32_t {name}_good_{tensor}[][{ELEMENTS}] = {_array(numbers)};")
            if tensor not in placed:
                align = f"{upper}_{'INPUT' if tensor == 'x' else 'OUTPUT'}_{tensor.upper()}_ALIGN"
                lines.append(f"OPWEST_ALIGNED({align}) static int32_t {name}_own_{tensor}[16];")
        handles = {m.name: "&vendor" if m.kind == "foreign" else f"&handles[{m.handle}]" for m in self.members}
        members = enumerate(handles.items())
        lines += function(
            f"static void {name}_set_context(int null)",
            *(f"{name}_context.{member} = null == {index} ? NULL : {handle};" for index, (member, handle) in members),
        )
        lines += self._states(contents)
        lines += function(
            f"static int {name}_do_open(void)",
            f"const int rc = {name}_open(&{name}_workspace, &{name}_context);",
            *([f"if (rc == 0) {{ {name}_move(); }}"] if self.states else []),
            "return rc;",
        )
        for call in ("close(&@_workspace, &@_context)", "cancel(&@_workspace)"):
            verb = call.partition("(")[0]
            lines += function(f"static int {name}_do_{verb}(void)", f"return {name}_{call};".replace("@", name))
        head = f"static struct opwest_call_device {name}_do_device(uint32_t index)"
        lines += function(head, f"return {name}_call_device(&{name}_workspace, index);")
        place = {"x": f"{name}_workspace.input.x"} | {y: f"{name}_workspace.output.{y}" for y in self.outputs}
        place = {t: p if t in placed else f"{name}_own_{t}" for t, p in place.items()}
        inputs = "0" if "x" in placed else place["x"]
        outputs = ", ".join(place[y] for y in self.outputs if y not in placed) or "0"
        lines += [f"static int {name}_start;"]
        lines += function(
            f"static int {name}_do_run(void)",
            *([f"{name}_start = {name}_workspace.opened ? {name}_content() : 0;"] if self.states else []),
            # While it is closed, a workspace has no inputs.
            f"if ({name}_workspace.opened) {{",
            *(f"\tmemset({place[y]}, 0x33, 32);" for y in self.outputs),
            f"\tmemcpy({place['x']}, {name}_good_x, 32);",
            "}",
            f"return {name}_run(&(struct {name}_inputs){{{inputs}}}, &(struct {name}_outputs){{{outputs}}},",
            f"\t&{name}_workspace, &{name}_context);",
        )
        right = [f"memcmp({place[y]}, {name}_good_{y}[{name}_start], 32) == 0" for y in self.outputs]
        if self.states:
            right = [f"{name}_start < 2", *right, f"{name}_content() == {name}_start + 2"]
        lines += function(f"static bool {name}_right(void)", f"return {' && '.join(right)};")
        lines += [f"static const struct subject {name}_subject = {{"]
        lines += [f'\t"{name}", &{name}_workspace.status, &{name}_workspace.opened, {name}_set_context,']
        lines += [f"\t{name}_do_open, {name}_do_run, {name}_right, {name}_do_close, {name}_do_cancel,"]
        lines += [f"\t{name}_do_device, &{name}_registry,"]
        lines += [f"\t{f'{name}_state_name' if self.states else 'NULL'}, NULL,", "};", ""]
        return "\n".join(lines)

    def _states(self, contents: dict[str, dict[str, list[int]]]) -> list[str]:
        """Return functions that read and write the states, through save and restore."""
        if not self.states:
            return []
        name, size = self.name, f"{self.name.upper()}_STATE_SIZE"
        rows = [[value for state in content.values() for value in state] for content in contents.values()]
        names = ", ".join(f'"{content} "' for content in (*contents, "unknown"))
        return [
            f"static const int32_t {name}_contents[][{len(rows[0])}] = {_array(rows)};",
            f"static uint8_t {name}_saved[{size}];",
            *function(
                f"static int {name}_content(void)",
                "int at = 0;",
                f"if ({name}_save(&{name}_workspace, {name}_saved, {size}) != 0) {{ return 4; }}",
                f"while (at < 4 && memcmp({name}_saved + 8, {name}_contents[at], {size} - 8U) != 0) {{ at++; }}",
                "return at;",
            ),
            f"static const char *const {name}_names[] = {{{names}}};",
            *function(f"static const char *{name}_state_name(void)", f"return {name}_names[{name}_content()];"),
            *function(
                f"static void {name}_move(void)",
                f"if ({name}_content() != 0) {{ return; }}",
                f"memcpy({name}_saved + 8, {name}_contents[1], {size} - 8U);",
                f"(void){name}_restore(&{name}_workspace, {name}_saved, {size});",
            ),
        ]


def _array(rows: list[list[int]]) -> str:
    listed = ("{" + ", ".join(f"(int32_t){n}LL" for n in row) + "}" for row in rows)
    return "{" + ", ".join(listed) + "}"


def glue(subjects: list[Subject], placed: dict[str, set[str]]) -> str:
    head = '#include <string.h>\n\n#include "journal.h"\n\nstruct vendor_npu {\n\tint nothing;\n};\n'
    head += "static struct vendor_npu vendor;\n\n"
    table = ", ".join(f"&{s.name}_subject" for s in subjects)
    tail = f"const struct subject *const subjects[] = {{{table}, NULL}};\n"
    return head + "\n".join(s.glue(placed[s.name]) for s in subjects) + "\n" + tail
