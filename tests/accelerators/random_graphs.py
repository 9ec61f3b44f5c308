# SPDX-License-Identifier: Apache-2.0
"""Random models for a CPU and accelerators, with states and views: manifests with one operator per step.

With `queues`, devices have queue depths and kinds of switching, and steps have programs and cycles. With `values`,
steps pass elements of tensors by value.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_models import write_manifest

SIZES = (1, 4, 7, 16, 33, 40, 64, 100, 129)
WIDTHS = {"uint8": 1, "uint16": 2, "uint32": 4}
PROGRAMS = ("p0", "p1", "p2")


@dataclass(frozen=True)
class View:
    """A view as in the manifest: `offset` in elements of `base`."""

    base: str
    offset: int
    dtype: str


class RandomGraph:
    """A random manifest, and the reads and writes of its steps by the names of tensors and views."""

    def __init__(
        self, seed: int, *, cached: bool, name: str | None = None, queues: bool = False, values: bool = False
    ) -> None:
        self.rng = rng = random.Random(seed)
        self.name = name or f"graph_{seed}"
        self.cached = cached
        self.queues = queues
        self.values = values
        self.launching = queues and rng.random() < 0.5
        """Whether nearly all steps are launched, on few devices: queues become long."""
        self.device_names = [f"d{i}" for i in range(rng.randint(1, 2 if self.launching else 3))]
        self.sizes: dict[str, int] = {}
        """Bytes, by the name of a tensor or view."""
        self.views: dict[str, View] = {}
        self.known: dict[str, set[int]] = {}
        """The bytes of each tensor that have a value."""
        self.written: list[str] = []
        """The intermediate tensors, of which some become outputs."""
        self.inputs = [self._tensor("in") for _ in range(rng.randint(1, 2))]
        self.constants = [self._tensor("constant") for _ in range(rng.randint(0, 2))]
        self.states = {self._tensor("state"): self._initial() for _ in range(rng.choice((0, 1, 1, 2)))}
        self.next = {name: "" for name in self.states if rng.random() < 0.4}
        for name in self.known:
            self.known[name] = set(range(self.sizes[name]))
        self.steps = [self._step(index) for index in range(rng.randint(3, 24 if queues else 14))]
        if not self._complete():
            self.steps.append({"device": None, "async": False, "stateful": False, "args": [(self._new(), "out")]})
        complete = self._complete()[-4:]
        self.outputs = rng.sample(complete, min(len(complete), rng.randint(1, 2)))
        self.next = {name: source for name in self.next if (source := self._source(name))}
        self.order = rng.choice(("given", "any"))
        self.pinned = {name for name in self.constants if rng.random() < 0.7}

    def span(self, name: str) -> tuple[str, int, int]:
        """Return the tensor that contains a view or is it, and the bytes there: the first one and the end."""
        at = 0
        size = self.sizes[name]
        while name in self.views:
            view = self.views[name]
            at += view.offset * self._width(view.base)
            name = view.base
        return name, at, at + size

    def dtype(self, name: str) -> str:
        return self.views[name].dtype if name in self.views else "uint8"

    def content(self, name: str) -> bytes:
        """Return the content of a constant, or the first content of a state."""
        given = self.states.get(name, "file")
        if isinstance(given, int):
            return bytes([given]) * self.sizes[name]
        return bytes(random.Random(f"{self.name} {name}").randrange(256) for _ in range(self.sizes[name]))

    def _width(self, name: str) -> int:
        return WIDTHS[self.dtype(name)]

    def _initial(self) -> int | str:
        return self.rng.choice((0, "file", self.rng.randint(1, 255)))

    def _tensor(self, kind: str) -> str:
        name = f"{kind}{len(self.sizes)}"
        self.sizes[name] = self.rng.choice(SIZES)
        self.known[name] = set()
        return name

    def _new(self) -> str:
        name = self._tensor("t")
        self.written.append(name)
        self._write(name)
        return name

    def _write(self, name: str) -> None:
        root, begin, end = self.span(name)
        self.known[root] |= set(range(begin, end))

    def _readable(self, name: str) -> bool:
        root, begin, end = self.span(name)
        return self.known[root].issuperset(range(begin, end))

    def _complete(self) -> list[str]:
        return [name for name in self.written if self._readable(name)]

    def _source(self, state: str) -> str | None:
        """Return the tensor or view that becomes the content of a state."""
        size = self.sizes[state]
        roots = [name for name in (*self.inputs, *self._complete()) if self.sizes[name] >= size]
        if not roots:
            return None
        root = self.rng.choice(roots)
        spare = self.sizes[root] - size
        return self._view(root, self.rng.randint(0, spare), size, "uint8") if spare else root

    def _view(self, root: str, begin: int, size: int, dtype: str | None = None) -> str:
        """Return a view of bytes of a tensor, perhaps as a part of another view."""
        rng = self.rng
        bases = [root]
        for name in self.views:
            whole, low, high = self.span(name)
            if whole == root and low <= begin and begin + size <= high and (begin - low) % self._width(name) == 0:
                bases.append(name)
        base = rng.choice(bases)
        fitting = [d for d, width in WIDTHS.items() if begin % width == 0 and size % width == 0]
        name = f"v{len(self.sizes)}"
        self.views[name] = View(base, (begin - self.span(base)[1]) // self._width(base), dtype or rng.choice(fitting))
        self.sizes[name] = size
        return name

    def _part(self, root: str) -> str:
        """Return a random view of a tensor, which often begins in the middle of a cache line."""
        begin = self.rng.randrange(self.sizes[root])
        if self.rng.random() < 0.5:
            begin -= begin % 4
        return self._view(root, begin, self.rng.randint(1, self.sizes[root] - begin))

    def _read(self, recent: bool) -> str | None:
        """Return a tensor or view whose bytes all have a value."""
        rng = self.rng
        found = [name for name, known in self.known.items() if known]
        name = rng.choice(found[-4:] if recent else found)
        if not self._readable(name) or rng.random() < 0.25:
            name = self._part(name)
        return name if self._readable(name) else None

    def _written(self) -> tuple[str, str]:
        """Return a tensor or view to write, and the direction of the argument."""
        rng, luck = self.rng, self.rng.random()
        partial = [name for name in self.written if not self._readable(name)]
        states = [name for name in self.states if name not in self.next]
        if partial and luck < 0.6:  # the neighbour of a part that was written
            root = rng.choice(partial)
            begin = min(set(range(self.sizes[root])) - self.known[root])
            size = self.sizes[root] - begin
            return self._view(root, begin, size if rng.random() < 0.5 else rng.randint(1, size)), "out"
        if states and luck < 0.7:
            name = rng.choice(states)
        elif self.written and luck < 0.8:
            name = rng.choice(self.written)
        else:
            name = self._tensor("t")
            self.written.append(name)
            if self.sizes[name] > 1 and rng.random() < 0.5:
                return self._view(name, 0, rng.randint(1, self.sizes[name] - 1)), "out"
            return name, "out"
        if rng.random() < 0.4:
            name = self._part(name)
        return name, rng.choice(("out", "inout")) if self._readable(name) else "out"

    def _step(self, index: int) -> dict[str, Any]:
        rng = self.rng
        device = rng.choice([None, *self.device_names, *self.device_names])
        if self.launching and rng.random() < 0.8:
            device = self.device_names[0]
        recent = rng.random() < 0.5
        reads: set[str] = set()
        for _ in range(rng.randint(1, 3)):
            reads.add(next(name for name in iter(lambda: self._read(recent), "") if name and name not in reads))
        args = [(name, "in") for name in sorted(reads)]
        passed = []
        for _ in range(rng.choice((0, 1, 1, 2)) if self.values else 0):
            if (read := self._read(recent=True)) is not None:
                root, begin, end = self.span(read)
                passed.append((self._view(root, rng.randrange(begin, end), 1), "value"))
        for number in range(1 if rng.random() < 0.8 else 2):
            name, direction = self._written()
            if any(self._overlap(name, other) for other, _ in args):
                if number:
                    continue
                name, direction = self._new(), "out"
            args.append((name, direction))
        for name, direction in args:
            if direction != "in":
                self._write(name)
        if rng.random() < 0.3:
            args.append((f"work{index}", "scratch"))
            self.sizes[f"work{index}"] = rng.choice(SIZES)
        args += passed
        rng.shuffle(args)
        return {
            "device": device,
            "async": device is not None and rng.random() < (0.95 if self.launching else 0.7),
            "stateful": rng.random() < 0.15,
            "args": args,
        }

    def _overlap(self, one: str, other: str) -> bool:
        (root, begin, end), (root_2, begin_2, end_2) = self.span(one), self.span(other)
        return root == root_2 and begin < end_2 and begin_2 < end

    def _pools(self) -> dict[str, Any]:
        rng = self.rng
        found: dict[str, Any] = {}
        for number in range(rng.randint(0, 2)):
            agents = rng.sample(["cpu", *self.device_names], rng.randint(1, len(self.device_names) + 1))
            found[f"pool{number}"] = {"size": rng.choice((64, 200, 1024)), "reachable_by": sorted(agents)}
        found["rest"] = {}
        for pool in found.values():
            if self.cached and rng.random() < 0.8:
                pool["cache_line"] = rng.choice((16, 32, 64))
            if rng.random() < 0.2:
                pool["align"] = rng.choice((16, 128))
        return found

    def _type(self, name: str) -> dict[str, Any]:
        dtype = self.dtype(name)
        return {"dtype": dtype, "shape": [self.sizes[name] // WIDTHS[dtype]]}

    def _state(self, name: str) -> dict[str, Any]:
        given = self.states[name]
        initial = {"initial": {"file": f"{name}.bin"} if given == "file" else given} if given else {}
        return {**self._type(name), **initial, **({"next": self.next[name]} if name in self.next else {})}

    def _add_queues(self, devices: dict[str, Any], operators: dict[str, Any], steps: list[dict[str, Any]]) -> None:
        """Add the keys of queues, programs and cycles."""
        rng = random.Random(f"{self.name} queues")
        programs = rng.choice(((), PROGRAMS[:1], PROGRAMS, PROGRAMS))
        for device in devices.values():
            if rng.random() < 0.7:
                device["queue_depth"] = rng.randint(1, 8)
            device["switching"] = rng.choice(("free", "load", "load", "exclusive"))
            if device["switching"] != "free":
                device["switch_cycles"] = rng.choice((0, 3, 40))
            if programs and rng.random() < 0.5:
                device["program"] = f"{rng.choice(programs)}.bin"
        for step in steps:
            operator = operators[step["call"]]
            operator["cycles"] = rng.randint(0, 30)
            if rng.random() < 0.3:
                step["cycles"] = rng.randint(0, 30)
            if operator["async"]:
                operator["launch_cycles"] = rng.choice((0, 0, 1, 5))
            if "device" in step and programs:
                for owner in (operator, step):
                    if rng.random() < 0.2:
                        owner["program"] = f"{rng.choice(programs)}.bin"

    def manifest(self) -> dict[str, Any]:
        rng = random.Random(f"{self.name} interfaces")

        def interface(name: str) -> dict[str, Any]:
            return {**self._type(name), **({"external": True} if rng.random() < 0.3 else {})}

        devices = {
            name: {"devicetree": {"nodelabel": name}, "coherent": rng.random() < 0.25} for name in self.device_names
        }
        operators, steps = {}, []
        used = {name for step in self.steps for name, _ in step["args"]} | set(self.next.values())
        for index, step in enumerate(self.steps):
            args = [
                {"name": f"a{number}", "dtype": self.dtype(tensor), "scalar": True}
                if direction == "value"
                else {"name": f"a{number}", **self._type(tensor), "direction": direction}
                for number, (tensor, direction) in enumerate(step["args"])
            ]
            operators[f"op{index}"] = {"args": args, "stateful": step["stateful"], "async": step["async"]}
            call: dict[str, Any] = {"call": f"op{index}"}
            if step["device"]:
                operators[f"op{index}"]["device"] = {}
                call["device"] = step["device"]
            call["args"] = [name for name, direction in step["args"] if direction != "scratch"]
            steps.append(call)
        if self.queues:
            self._add_queues(devices, operators, steps)
        for name in reversed(self.views):  # those of which only parts are used
            used |= {self.views[name].base} if name in used else set()
        tensors = {name: self._type(name) for name in self.written if name in used and name not in self.outputs}
        tensors |= {
            name: {"view_of": view.base, "offset": view.offset, **self._type(name)}
            for name, view in self.views.items()
            if name in used
        }
        return {
            "version": 1,
            "model": self.name,
            "memory": self._pools(),
            "devices": devices,
            "operators": operators,
            "constants": {
                name: {"file": f"{name}.bin", **self._type(name), **({"pool": "rest"} if name in self.pinned else {})}
                for name in self.constants
                if name in used
            },
            "run": {
                "order": self.order,
                "inputs": {name: interface(name) for name in self.inputs},
                "outputs": {name: interface(name) for name in self.outputs},
                "state": {name: self._state(name) for name in self.states},
                "tensors": tensors,
                "steps": steps,
            },
        }

    def write(self, folder: Path, operators: str | None = None) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "operators.c").write_text(operators or self.operators())
        for name in (*self.constants, *self.states):
            (folder / f"{name}.bin").write_bytes(self.content(name))
        for name in PROGRAMS if self.queues else ():
            (folder / f"{name}.bin").write_bytes(f"the program {name}".encode())
        return write_manifest(folder, self.manifest(), "files: [operators.c]")

    def head(self, index: int) -> str:
        step = self.steps[index]
        parameters = [
            f"{'const ' * (d == 'in')}{self.dtype(t)}_t {'*' * (d != 'value')}a{n}"
            for n, (t, d) in enumerate(step["args"])
        ]
        parameters += ["const struct device *dev"] if step["device"] else []
        return f"int32_t op{index}({', '.join(parameters)})"

    def operators(self) -> str:
        lines = ["#include <stdint.h>", "struct device;"]
        for index, step in enumerate(self.steps):
            lines += [self.head(index), "{", *(f"\t(void)a{n};" for n in range(len(step["args"])))]
            lines += ["\t(void)dev;"] if step["device"] else []
            lines += ["\treturn 0;", "}"]
        return "\n".join(lines) + "\n"
