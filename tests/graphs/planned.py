# SPDX-License-Identifier: Apache-2.0
"""Imported models with their planned memory: the emitted operators on this machine, and images for QEMU."""

import ctypes
import shutil
import subprocess

import numpy as np
from opwest.tuning import measure
from opwest.tuning.machines import machines

CORES = {"mla": "cortex-m3", "dsp": "cortex-m4", "mve": "cortex-m55"}
PATTERN = 0xA5
GUARD, ALIGN = 32, 16
_CC = ["-std=c11", "-O0", "-ffp-contract=off", "-fPIC", "-shared", "-w"]


def compiler():
    """Return the command for shared libraries: tcc is ten times as fast."""
    return ["tcc", "-shared", "-w"] if shutil.which("tcc") else ["cc", *_CC]


class RefusedError(Exception):
    """An operator that returns an error code."""


class Planned:
    """A model or a variant in its planned memory. `sources` are compiled for this machine."""

    def __init__(self, found, folder):
        self.model, self.plan = found.model, found.plan
        self.folder = folder
        self.constants = {one.name: np.frombuffer(one.content, np.uint8) for one in self.model.constants}
        self.buffers = {one.name: one for one in self.model.buffers}
        self.external = [one for one in (*self.model.inputs, *self.model.outputs) if one.name not in self.buffers]

    @property
    def symbols(self):
        return sorted({one.symbol for one in self.model.operators})

    def source(self, variant=None):
        return (self.folder / variant if variant else self.folder) / "operators.c"

    def where(self, binding):
        """Return the kind of memory, the name and the offset of an argument."""
        if binding.name in self.buffers:
            pool, start = self.plan.place(binding.name)
            return "pool", pool, start + binding.offset
        kind = "constant" if binding.name in self.constants else "external"
        return kind, binding.name, binding.offset

    # On this machine.

    def compile(self, name):
        library = self.folder / name
        words = [*compiler(), str(self.source()), "-lm", "-o", str(library)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]
        self.code = ctypes.CDLL(str(library))
        self.reset()

    def reset(self):
        """Set the initial content of states, and copy constants to pools."""
        self.lasting = {}
        for one in self.model.states:
            size = one.type.size
            initial = self.constants[one.initial] if one.initial else np.zeros(1, np.uint8)
            self.lasting[one.name] = np.resize(initial, size)
        for one in self.model.buffers:
            if one.role == "constant":
                self.lasting[one.name] = self.constants[one.name]

    def run(self, inputs):
        """Return the outputs of the next run. Raises RefusedError."""
        self.memory = {("pool", name): _painted(plan.size) for name, plan in self.plan.pools.items()}
        self.memory |= {("external", one.name): _painted(one.type.size) for one in self.external}
        self.memory |= {("constant", name): _aligned(content) for name, content in self.constants.items()}
        for name, content in self.lasting.items():
            self._tensor(name, len(content))[:] = content
        for one, array in zip(self.model.inputs, inputs, strict=True):
            self._tensor(one.name, one.type.size)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for step in self.model.steps:
            pointers = []
            for binding in step.bindings:
                kind, name, offset = self.where(binding)
                pointers.append(ctypes.c_void_p(self.memory[kind, name].ctypes.data + offset))
            status = getattr(self.code, step.operator.symbol)(*pointers)
            if step.operator.returns_status and status:
                raise RefusedError(step.operator.symbol)
        for one in self.model.states:
            if one.next is not None:
                kind, name, offset = self.where(one.next)
                self._tensor(one.name, one.type.size)[:] = self.memory[kind, name][offset : offset + one.type.size]
        self.lasting = {name: self._tensor(name, len(content)).copy() for name, content in self.lasting.items()}
        return [
            self._tensor(one.name, one.type.size).copy().view(one.type.dtype.numpy).reshape(one.type.shape)
            for one in self.model.outputs
        ]

    def _tensor(self, name, size):
        if name in self.buffers:
            pool, start = self.plan.place(name)
            return self.memory["pool", pool][start : start + size]
        return self.memory["external", name][:size]


def _aligned(content):
    made = _painted(len(content))
    made[:] = content
    return made


def _painted(size):
    """Return memory at an address that is a multiple of 16, with the pattern."""
    whole = np.full(size + 2 * ALIGN, PATTERN, np.uint8)
    start = -whole.ctypes.data % ALIGN
    return whole[start : start + size]


class Images:
    """Variants of models that wait for a core: one image runs many."""

    def __init__(self, core, folder, most=24):
        self.core, self.folder, self.most = core, folder, most
        self.waiting = []

    def add(self, key, planned, variant, cases, expected):
        """Add a variant with its cases. The sources are copied."""
        content = planned.source(variant).read_text(encoding="utf-8")
        self.waiting.append((key, planned, content, cases, expected))

    def is_full(self):
        return len(self.waiting) >= self.most

    def run(self):
        """Return the wrong bytes and the changed guards of each case by key; empty without models."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return {}
        folder = self.folder / self.core
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        machine = machines()[CORES[self.core]]
        writer = _Writer()
        objects = []
        words = [*machine.compiler, *measure.FLAGS, "-w", "-O1", "-I", str(measure.HERE)]
        for number, (_, planned, content, cases, expected) in enumerate(waiting):
            source = folder / f"operators_{number}.c"
            source.write_text(content, encoding="utf-8")
            names = [f"-D{one}=g{number}_{one}" for one in planned.symbols]
            objects.append(source.with_suffix(".o"))
            measure.execute([*words, *names, "-c", str(source), "-o", str(objects[-1])])
            writer.model(number, planned, cases, expected)
        writer.write(folder)
        for source in (folder / "candidates.c", measure.HERE / machine.start, measure.HERE / "measure.c"):
            objects.append(folder / f"{source.stem}.o")
            measure.execute([*words, "-c", str(source), "-o", str(objects[-1])])
        measure.execute([*words, "-c", "content.S", "-o", "content.o"], folder)
        starts = [f"-Wl,--defsym={name}={start:#x}" for name, start in machine.memories]
        link = ["-nostartfiles", "-nostdlib", "-Wl,--no-warn-rwx-segments", "-T", str(measure.HERE / "image.ld")]
        image = folder / "image.elf"
        files = [*map(str, objects), str(folder / "content.o")]
        measure.execute([*words, *link, *starts, *files, *machine.libraries, "-o", str(image)])
        run = [*machine.emulator, "-nographic", "-monitor", "none", "-serial", "none"]
        run += ["-semihosting-config", "enable=on,target=native", "-kernel", str(image)]
        rows = [line.split() for line in measure.execute(run).splitlines() if line.startswith("candidate ")]
        assert len(rows) == len(writer.owners), f"{len(rows)} of {len(writer.owners)} cases ended on {self.core}"
        found = {}
        for owner, row in zip(writer.owners, rows, strict=True):
            found.setdefault(waiting[owner][0], []).append((int(row[2]), int(row[4])))
        return found


class _Writer:
    """The C file with the calls of models, and their content: the format of `opwest.tuning.image`."""

    def __init__(self):
        self.lines = ['#include "image.h"', "extern uint8_t content[];", ""]
        self.content = bytearray()
        self.owners = []
        self.size = 0

    def _put(self, array):
        data = np.ascontiguousarray(array).tobytes()
        self.content += bytes(-len(self.content) % ALIGN)
        self.content += data
        return len(self.content) - len(data)

    def model(self, number, planned, cases, expected):
        model, start = planned.model, 0

        def block(size):
            nonlocal start
            found = -(-(start + GUARD) // ALIGN) * ALIGN
            start = found + size + GUARD
            return found

        pools = {name: block(plan.size) for name, plan in planned.plan.pools.items()}
        externals = {one.name: block(one.type.size) for one in planned.external}
        own = {one.name: block(one.type.size) for one in (*model.inputs, *model.outputs)
               if one.name in planned.buffers}  # fmt: skip
        constants = {name: self._put(content) for name, content in planned.constants.items()}

        def place(binding):
            kind, name, offset = planned.where(binding)
            if kind == "constant":
                return f"content + {constants[name] + offset}"
            return f"memory + {(pools if kind == 'pool' else externals)[name] + offset}"

        calls, declared = [], {}
        assert not model.states, "random graphs have no states"
        sources = {one.name: f"content + {constants[one.name]}" for one in model.buffers if one.role == "constant"}
        sources |= {one.name: f"memory + {own[one.name]}" for one in model.inputs if one.name in own}
        for one in (*model.buffers, *model.inputs):
            if one.name in sources:
                calls.append(_copy(_in_pool(planned, pools, one.name), sources[one.name], one.type.size))
        for step in model.steps:
            passed = [place(binding) for binding in step.bindings]
            declared[step.operator.symbol] = len(passed)
            calls.append(f"\tg{number}_{step.operator.symbol}({', '.join(passed)});")
        for one in model.outputs:
            if one.name in own:
                calls.append(_copy(f"memory + {own[one.name]}", _in_pool(planned, pools, one.name), one.type.size))
        self.lines += [
            f"void g{number}_{symbol}({', '.join(['const void *'] * count)});" for symbol, count in declared.items()
        ]
        self.lines += [f"static void run_{number}(void)", "{", *calls, "}", ""]
        places = {**externals, **own}
        for case, (given, wanted) in enumerate(zip(cases, expected, strict=True)):
            for name, tensors, arrays in (
                ("inputs", model.inputs, given),
                ("outputs", model.outputs, wanted),
            ):
                rows = [
                    f"\t{{memory + {places[one.name]}, content + {self._put(array)}, {one.type.size}}},"
                    for one, array in zip(tensors, arrays, strict=True)
                ]
                self.lines += [f"static const struct block {name}_{number}_{case}[] = {{", *rows, "};"]
            self.owners.append(number)
        self.size = max(self.size, start)

    def write(self, folder):
        seen = {}
        rows = []
        for owner in self.owners:
            case = seen[owner] = seen.get(owner, -1) + 1
            inputs, outputs = f"inputs_{owner}_{case}", f"outputs_{owner}_{case}"
            counts = f"sizeof({inputs}) / sizeof(*{inputs}), sizeof({outputs}) / sizeof(*{outputs})"
            rows.append(f"\t{{run_{owner}, {inputs}, {outputs}, 0, {counts}}},")
        self.lines += [
            "const struct candidate candidates[] = {",
            *rows,
            "};",
            f"const uint32_t candidate_count = {len(rows)};",
            f"const uint32_t memory_size = {self.size};",
            f"uint8_t memory[{self.size}] __attribute__((aligned({ALIGN})));",
        ]
        copy = (
            "static void copy(uint8_t *to, const uint8_t *from, uint32_t n)\n"
            "{\n\twhile (n--) {\n\t\t*to++ = *from++;\n\t}\n}\n"
        )
        text = "\n".join([*self.lines[:2], copy, *self.lines[2:], ""])
        (folder / "candidates.c").write_text(text, encoding="utf-8")
        (folder / "content.bin").write_bytes(bytes(self.content))
        (folder / "content.S").write_text(
            '.section .content, "aw"\n.balign 16\n.global content, content_end\n'
            'content:\n.incbin "content.bin"\ncontent_end:\n',
            encoding="utf-8",
        )


def _in_pool(planned, pools, name):
    pool, start = planned.plan.place(name)
    return f"memory + {pools[pool] + start}"


def _copy(target, source, size):
    return f"\tcopy({target}, {source}, {size});"
