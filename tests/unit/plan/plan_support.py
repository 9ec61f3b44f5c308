# SPDX-License-Identifier: Apache-2.0
"""Models from steps as text: `left: a b -> c` is launched on the device `left`, reads a and b, and writes c.

`left/conv: a -> b` has the program conv. `=20` at the end is a step of 20 cycles, `=3+20` also a launch of 3 cycles.
"""

import itertools
import random
import re

from opwest.base.diagnostics import Location
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.model.types.model import Argument, Binding, Buffer, Model, Operator, Pool, Step, TensorInfo
from opwest.model.types.sections import Application, Device, Program, Suite
from opwest.plan.problem import Block

HERE = Location("m.yaml", 1, 1)
_STEP = re.compile(
    r"(?:(?P<device>\w+)(?:/(?P<program>\w+))?(?P<kind>[:!]) )?(?P<reads>[^>]*?) ?->(?P<writes>[^*=]*)"
    r"(?P<stateful>\*?)(?: ?=(?:(?P<launch>\d+)[+])?(?P<cycles>\d+))?"
)


def argument(name, direction, *, in_place=(), size=1):
    """Return an argument of `size` bytes."""
    type_ = TensorType(DTYPES["int8"], (size,))
    return Argument(name, type_, direction, scalar=False, align=1, info=TensorInfo(), location=HERE, in_place=in_place)


def bound(tensor):
    """Return the binding of a name in a step: `in...` and `out...` are the caller's, `w...` constants, `7` a number.

    `t[4:8]` is a view of the bytes 4 to 7 of t.
    """
    if tensor.isdigit():
        return Binding("scalar", "number", int(tensor))
    name, _, part = tensor.partition("[")
    view = (tensor, int(part.partition(":")[0])) if part else (None, 0)
    for role in ("input", "output"):
        if tensor.startswith(role[:-3]):
            return Binding(role, name, 0, *view)
    return Binding("constant" if tensor.startswith("w") else "buffer", name, 0, *view)


def size_of(tensor):
    """Return the bytes of a view; 1 for a tensor."""
    begin, _, end = tensor.partition("[")[2].rstrip("]").partition(":")
    return int(end) - int(begin) if end else 1


def step_of(text, index):
    """Return a step: `dev: ...` launches, `dev! ...` runs on a device synchronously, `*` at the end is stateful.

    `+t` is read and written, `^t` is scratch memory. A result `c@0,1` may use the memory of arguments 0 and 1.
    """
    found = _STEP.fullmatch(text)
    assert found, text
    args, bindings = [], []
    for direction, names in (("in", found["reads"]), ("out", found["writes"])):
        for name in names.split():
            tensor, _, places = name.partition("@")
            way = {"+": "inout", "^": "scratch"}.get(tensor[0], direction)
            taken = tuple(f"a{place}" for place in places.split(",")) if places else ()
            args.append(argument(f"a{len(args)}", way, in_place=taken, size=size_of(tensor)))
            bindings.append(bound(tensor.lstrip("+^")))
    operator = Operator(
        name=f"op{index}",
        symbol=f"op{index}",
        description=None,
        args=tuple(args),
        returns_status=True,
        takes_device=found["device"] is not None,
        device_type=None,
        device_program=None,
        handle="",
        is_async=found["kind"] == ":",
        stateful=bool(found["stateful"]),
        location=HERE,
        launch_cycles=int(found["launch"] or 0),
    )
    name = found["program"]
    program = Program(name, f"{name}.bin", name.encode()) if name else None
    cycles = int(found["cycles"]) if found["cycles"] else None
    return Step(index, operator, found["device"], tuple(bindings), HERE, program, cycles)


def device(name, depth=None, switching="load", switch_cycles=0, *, hooks=True, coherent=True):
    return Device(
        name=name,
        devicetree=None,
        boards=(),
        handle=None,
        has_hooks=hooks,
        type=None,
        program=None,
        timeout_ms=-1,
        own_timeout_ms=-1,
        queue_depth=depth,
        switching=switching,
        switch_cycles=switch_cycles,
        power="open",
        coherent=coherent,
        reads_flash=True,
        host_latency_us=None,
        location=HERE,
    )


def buffer(name, size=1, *, role="intermediate", align=1, pools=("sram",), incoherent=False):
    return Buffer(name, role, TensorType(DTYPES["int8"], (size,)), align, pools, incoherent)


def pool(name="sram", size=None, *, align=1, cache_line=None):
    """Return a memory pool; the position of its size is line 9."""
    return Pool(name, size, align, cache_line, None, (), HERE, Location("m.yaml", 9, 9))


def model_of(*texts, buffers=None, pools=None, reorder=False, planner="greedy", fixed=None, devices=()):
    """Return a model of steps; without `buffers`, every buffer that they name has one byte."""
    steps = tuple(step_of(text, index) for index, text in enumerate(texts))
    named = dict.fromkeys(b.name for step in steps for b in step.bindings if b.role == "buffer")
    return Model(
        name="m",
        description=None,
        manifest="m.yaml",
        boards=(),
        operators=tuple(step.operator for step in steps),
        devices=tuple(devices),
        pools=tuple(pools if pools is not None else [pool()]),
        constants=(),
        inputs=(),
        outputs=(),
        buffers=tuple(buffers if buffers is not None else map(buffer, named)),
        steps=steps,
        reorder=reorder,
        memory_planner=planner,
        fixed=fixed,
        builds=(),
        declared_targets=(),
        externals=(),
        needs_full_libc=False,
        needs_tvm=False,
        application=Application.__new__(Application),
        suite=Suite.__new__(Suite),
        compat=None,
        inputs_read=(),
        location=HERE,
    )


def random_steps(seed, most=9):
    """Return steps as text, with every kind of access, on two devices and the processor."""
    rng = random.Random(seed)
    tensors = ["a", "b", "c", "d", "e", "in", "out", "w", "7"]
    texts = []
    for _ in range(rng.randint(1, most)):
        reads = rng.sample(tensors, rng.randint(0, 2))
        writes = rng.sample(["a", "b", "c", "d", "e", "+a", "+b", "^c", "out"], rng.randint(0, 2))
        device = rng.choice(["", "", "left: ", "left: ", "right: ", "right! "])
        texts.append(f"{device}{' '.join(reads)} -> {' '.join(writes)}".rstrip() + rng.choice(["", "", "*"]))
    return texts


def waits(schedule):
    """Return the waits before every step and at the end: `left 0 2, 1 left` for steps 0 and 2, one step may remain."""
    return [
        [f"{s.device} {' '.join(map(str, s.steps))}{f', {s.leave} left' if s.leave else ''}" for s in before]
        for before in schedule.syncs
    ]


def order(schedule):
    """Return the manifest's numbers of the steps, in the order in which they run."""
    return [int(step.operator.name.removeprefix("op")) for step in schedule.steps]


def conflict(one, other):
    """Whether one of two steps writes what the other uses."""
    tensors = []
    for step in (one, other):
        pairs = zip(step.operator.args, step.bindings, strict=True)
        used = [(a.direction != "in", b.name) for a, b in pairs if b.role in ("buffer", "output")]
        tensors.append(({name for _, name in used}, {name for written, name in used if written}))
    (used, written), (used_2, written_2) = tensors
    return bool(written & used_2 or written_2 & used)


HARD = [
    Block(f"b{i}", size, 1, first, last)
    for i, (size, first, last) in enumerate(
        [(5, 0, 1), (4, 1, 4), (4, 3, 6), (2, 2, 3), (3, 4, 7), (2, 1, 4), (1, 0, 3)]
    )
]
"""Blocks for which greedy needs 14 bytes, the best plan 13; the peak has 13."""


def least(blocks):
    """Return the minimum size of all plans: some order of placing blocks as low as possible reaches it."""
    best = sum(b.size + b.align for b in blocks)
    for order in itertools.permutations(blocks):
        placed = []
        for block in order:
            beside = [(o, o + b.size) for o, b in placed if b.first <= block.last and block.first <= b.last]
            offsets = {0, *(-(-end // block.align) * block.align for _, end in beside)}
            free = [o for o in offsets if all(o + block.size <= a or z <= o for a, z in beside)]
            placed.append((min(free), block))
        best = min(best, max(o + b.size for o, b in placed))
    return best
