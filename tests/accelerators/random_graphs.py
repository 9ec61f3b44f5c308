# SPDX-License-Identifier: Apache-2.0
"""Random models for a CPU and accelerators: manifests with one operator per step."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

SIZES = (1, 4, 7, 16, 33, 40, 64, 100, 129)


class RandomGraph:
    """A random manifest, and the reads and writes of its steps by tensor name."""

    def __init__(self, seed: int, *, cached: bool, name: str | None = None) -> None:
        self.rng = rng = random.Random(seed)
        self.name = name or f"graph_{seed}"
        self.cached = cached
        self.device_names = [f"d{i}" for i in range(rng.randint(1, 3))]
        self.sizes: dict[str, int] = {}
        self.readable: list[str] = []
        self.written: list[str] = []
        self.inputs = [self._tensor("in") for _ in range(rng.randint(1, 2))]
        self.constants = [self._tensor("constant") for _ in range(rng.randint(0, 2))]
        self.steps = [self._step(index) for index in range(rng.randint(3, 14))]
        self.outputs = rng.sample(self.written, min(len(self.written), rng.randint(1, 2)))
        self.order = rng.choice(("given", "any"))
        self.pinned = {name for name in self.constants if rng.random() < 0.7}

    def _tensor(self, kind: str) -> str:
        name = f"{kind}{len(self.sizes)}"
        self.sizes[name] = self.rng.choice(SIZES)
        self.readable.append(name)
        return name

    def _step(self, index: int) -> dict[str, Any]:
        rng = self.rng
        device = rng.choice([None, *self.device_names, *self.device_names])
        recent = self.readable[-4:] if rng.random() < 0.5 else self.readable
        reads = rng.sample(recent, min(len(recent), rng.randint(1, 3)))
        args = [(name, "in") for name in reads]
        for _ in range(1 if rng.random() < 0.8 else 2):
            old = [name for name in self.written if name not in reads and name not in dict(args)]
            if old and rng.random() < 0.3:
                args.append((rng.choice(old), rng.choice(("out", "inout"))))
            else:
                name = self._tensor("t")
                self.written.append(name)
                args.append((name, "out"))
        if rng.random() < 0.3:
            args.append((f"work{index}", "scratch"))
            self.sizes[f"work{index}"] = rng.choice(SIZES)
        rng.shuffle(args)
        return {
            "device": device,
            "async": device is not None and rng.random() < 0.7,
            "stateful": rng.random() < 0.15,
            "args": args,
        }

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

    def manifest(self) -> dict[str, Any]:
        """Return the manifest without objects."""
        rng = random.Random(f"{self.name} interfaces")

        def interface(name: str) -> dict[str, Any]:
            entry: dict[str, Any] = {"dtype": "uint8", "shape": [self.sizes[name]]}
            if rng.random() < 0.3:
                entry["external"] = True
            return entry

        devices = {
            name: {"devicetree": {"nodelabel": name}, "coherent": rng.random() < 0.25} for name in self.device_names
        }
        operators, steps = {}, []
        for index, step in enumerate(self.steps):
            args = [
                {"name": f"a{number}", "dtype": "uint8", "shape": [self.sizes[tensor]], "direction": direction}
                for number, (tensor, direction) in enumerate(step["args"])
            ]
            operators[f"op{index}"] = {"args": args, "stateful": step["stateful"], "async": step["async"]}
            call: dict[str, Any] = {"call": f"op{index}"}
            if step["device"]:
                operators[f"op{index}"]["device"] = {}
                call["device"] = step["device"]
            call["args"] = [name for name, direction in step["args"] if direction != "scratch"]
            steps.append(call)
        return {
            "version": 1,
            "model": self.name,
            "memory": self._pools(),
            "devices": devices,
            "operators": operators,
            "constants": {
                name: {"file": f"{name}.bin", **({"pool": "rest"} if name in self.pinned else {})}
                for name in self.constants
                if any(name == tensor for step in self.steps for tensor, _ in step["args"])
            },
            "run": {
                "order": self.order,
                "inputs": {name: interface(name) for name in self.inputs},
                "outputs": {name: interface(name) for name in self.outputs},
                "steps": steps,
            },
        }

    def write(self, folder: Path, operators: str | None = None) -> Path:
        """Write manifest.yaml and the files that it names."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "operators.c").write_text(operators or self.operators())
        for name in self.constants:
            content = bytes(random.Random(f"{self.name} {name}").randrange(256) for _ in range(self.sizes[name]))
            (folder / f"{name}.bin").write_bytes(content)
        # objects: is on a line of its own: the helper for LLVM searches for that line.
        text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in self.manifest().items())
        text += "\nobjects:\n  - {files: [operators.c], stateful: true}\n"
        (folder / "manifest.yaml").write_text(text)
        return folder / "manifest.yaml"

    def operators(self, body: str = "return 0;") -> str:
        """Return a C source; `body` may use {step}."""
        lines = ["#include <stdint.h>", "struct device;"]
        for index, step in enumerate(self.steps):
            parameters = [f"{'const ' * (d == 'in')}uint8_t *a{n}" for n, (_, d) in enumerate(step["args"])]
            parameters += ["const struct device *dev"] if step["device"] else []
            head = f"int32_t op{index}({', '.join(parameters)})"
            lines += [f"{head};", f"{head}", "{", *(f"\t(void)a{n};" for n in range(len(step["args"])))]
            lines += ["\t(void)dev;"] if step["device"] else []
            lines += [f"\t{body.format(step=index)}", "}"]
        return "\n".join(lines) + "\n"
