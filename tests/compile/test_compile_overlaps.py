# SPDX-License-Identifier: Apache-2.0
"""Buffers, pools and workspaces that overlap or are misaligned, against an oracle: every pair, at both ends.

`small` has its comparisons in the code of run, `large` calls the runtime with a table. `align` is an alignment that
the manifest declares.
"""

import errno
import itertools
import random
from pathlib import Path
from typing import NamedTuple

import pytest
from c_support import build, execute
from campaign import SANITIZED_LEVEL, sized
from golden_support import Metadata, generate_quickly
from requirements_support import need_compiler

PROGRAM = Path(__file__).parent / "programs" / "apart.c"
FLAGS = ["-std=c11", SANITIZED_LEVEL, "-g", "-Wall", "-Wextra", "-Werror"]
FLAGS += ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
ARENA = 4096
INPUT, OUTPUT, POOL = 8, 9, 10
NONE = 0xFFFF


class Shape(NamedTuple):
    """A model: the size in bytes and the alignment of each input and output, the sizes of its tensors in pools."""

    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]
    pools: tuple[int, ...]


SHAPES = {
    "small": Shape(((13, 1),), ((12, 4),), (9,)),
    "large": Shape(((13, 1), (8, 8), (1, 1)), ((7, 1), (12, 4), (1, 1), (2, 2)), (9, 24)),
}
REST = (("small", "llvm"), ("large", "c"), ("large", "llvm"))
MANIFEST = """version: 1
model: apart
objects:
  - {{files: [spread.c]}}
memory: {{{memory}}}
operators:
  spread: {{args: [{args}]}}
run:
  inputs: {{{inputs}}}
  outputs: {{{outputs}}}
  tensors: {{{tensors}}}
  state: {{kept: {{dtype: int8, shape: [3]}}}}
  steps:
    - {{call: spread, args: [{given}]}}
"""


def generated(work: Path, shape: Shape, metadata: Metadata, checks: str = "") -> Path:
    """Generate a model whose operator writes the sum of all inputs to each output."""
    tensors = [
        *((f"x{i}", size, "in") for i, (size, _) in enumerate(shape.inputs)),
        *((f"s{i}", size, "out") for i, size in enumerate(shape.pools)),
        ("kept", 3, "inout"),
        *((f"y{i}", size, "out") for i, (size, _) in enumerate(shape.outputs)),
    ]
    signature = ", ".join(f"{'const ' * (way == 'in')}int8_t *{name}" for name, _, way in tensors)
    code = f"#include <stdint.h>\nint32_t spread({signature})\n{{\n\tint32_t sum = 0;\n"
    for name, size, way in tensors:
        change = f"sum += {name}[i]" if way == "in" else f"{name}[i] = (int8_t)sum"
        code += f"\tfor (int i = 0; i < {size}; i++) {{\n\t\t{change};\n\t}}\n"
    (work / "spread.c").write_text(f"{code}\treturn 0;\n}}\n")

    def placed(name: str, buffers: tuple[tuple[int, int], ...]) -> str:
        form = "{}{}: {{dtype: int8, shape: [{}], align: {}, external: true}}"
        return ", ".join(form.format(name, i, *buffer) for i, buffer in enumerate(buffers))

    form = "{{name: {}, dtype: int8, shape: [{}], direction: {}}}"
    text = MANIFEST.format(
        memory=", ".join(f"p{i}: {{size: 1KiB}}" for i in range(len(shape.pools))),
        args=", ".join(form.format(*tensor) for tensor in tensors),
        inputs=placed("x", shape.inputs),
        outputs=placed("y", shape.outputs),
        tensors=", ".join(f"s{i}: {{pool: p{i}}}" for i in range(len(shape.pools))),
        given=", ".join(name for name, *_ in tensors),
    )
    (work / "manifest.yaml").write_text(text + checks)
    return generate_quickly([work / "manifest.yaml"], work / "app", metadata=metadata)


class Range(NamedTuple):
    """A range of memory: its size, its alignment, and its kind with its index."""

    size: int
    align: int
    kind: int
    index: int


def ranges(shape: Shape, line: str) -> list[Range]:
    """Return the workspace, pools, inputs and outputs, from the first line of the program."""
    numbers = [int(word) for word in line.split()]
    kinds = [(0, 0), *((POOL, i) for i in range(len(shape.pools)))]
    kinds += [(INPUT, i) for i in range(len(shape.inputs))] + [(OUTPUT, i) for i in range(len(shape.outputs))]
    sizes = zip(numbers[::2], numbers[1::2], strict=True)
    return [Range(*numbers, *kind) for numbers, kind in zip(sizes, kinds, strict=True)]


def touches(one: Range, start: int, other: Range, begin: int) -> bool:
    return not set(range(start, start + one.size)).isdisjoint(range(begin, begin + other.size))


def expected(found: list[Range], places: list[int]) -> str:
    """Return the answer of the program."""
    pools = [k for k, one in enumerate(found) if one.kind == POOL]
    for number, k in enumerate(pools):
        if any(touches(found[k], places[k], found[i], places[i]) for i in (0, *pools[:number])):
            return f"{-errno.EINVAL} {POOL} {found[k].index} 0 0 0 1"
    buffers = [k for k, one in enumerate(found) if one.kind in (INPUT, OUTPUT)]
    wrong = [k for k in buffers if places[k] % found[k].align]
    for k in buffers:
        for i in range(k):
            both_read = found[k].kind == found[i].kind == INPUT
            if not both_read and touches(found[k], places[k], found[i], places[i]):
                wrong.append(k)
    if wrong:
        return f"0 0 {NONE} {-errno.EINVAL} {found[wrong[0]].kind} {found[wrong[0]].index} 1"
    return f"0 0 {NONE} 0 0 {NONE} 1"


def apart(found: list[Range], rng: random.Random) -> list[int]:
    """Return places that do not overlap, in a random order."""
    places, at = [0] * len(found), ARENA // 4
    for k in rng.sample(range(len(found)), len(found)):
        at = -(-at // 64) * 64 + rng.choice((0, found[k].align))
        places[k] = at
        at += found[k].size
    return places


def layouts(found: list[Range], rng: random.Random) -> list[list[int]]:
    """Return every pair of ranges at both ends of each other, and random ones."""
    result = []
    pairs = list(itertools.permutations(range(len(found)), 2))
    for k, i in [*pairs, *(rng.choice(pairs) for _ in range(sized(300, 20_000)))]:
        one, other = found[k], found[i]
        ends = (-one.size - 1, -one.size, 1 - one.size, 0, other.size - 1, other.size, other.size + 1)
        for distance in (*ends, rng.randint(-one.size, other.size)):
            places = apart(found, rng)
            places[k] = places[i] + distance
            if one.kind in (0, POOL):  # the program needs an aligned workspace; misaligned pools: lifecycle.c
                places[k] -= places[k] % one.align
            result.append(places)
    return result


@pytest.mark.parametrize(("name", "metadata"), [("small", "c"), *REST], indirect=["metadata"])
def test_overlaps_are_refused_as_the_oracle_says(tmp_path: Path, name: str, metadata: Metadata) -> None:
    need_compiler("gcc", FLAGS, link=True)
    shape = SHAPES[name]
    app = generated(tmp_path, shape, metadata)
    if metadata == "c":
        code = (app / "models" / "apart" / "src" / "apart_run.c").read_text()
        assert ("opwest_buffers_overlap(" in code) == (name == "large")
    program = build(app, tmp_path / "build", PROGRAM, flags=FLAGS)
    found = ranges(shape, execute(program, text="").stdout)
    chosen = layouts(found, random.Random(name))
    done = execute(program, text="".join(" ".join(map(str, places)) + "\n" for places in chosen))
    answers = done.stdout.splitlines()[1:]
    assert (done.returncode, len(answers)) == (0, len(chosen)), done.stderr
    wrong = [
        (places, answer) for places, answer in zip(chosen, answers, strict=True) if answer != expected(found, places)
    ]
    assert not wrong, [(*one, expected(found, one[0])) for one in wrong[:3]]
    kinds = {answer.split()[3] for answer in answers if answer.startswith("0 ")}
    assert kinds == {"0", str(-errno.EINVAL)}


@pytest.mark.parametrize(("name", "metadata"), [("small", "c"), ("large", "llvm")], indirect=["metadata"])
def test_false_leaves_the_check_out(tmp_path: Path, name: str, metadata: Metadata) -> None:
    """The last output in the memory of the first input: the operator has read it before."""
    need_compiler("gcc", FLAGS, link=True)
    shape = SHAPES[name]
    app = generated(tmp_path, shape, metadata, "  checks: {buffers: false}\n")
    program = build(app, tmp_path / "build", PROGRAM, flags=FLAGS)
    found = ranges(shape, execute(program, text="").stdout)
    places = [-(-(one * 256) // 64) * 64 for one in range(len(found))]
    places[-1] = places[1 + len(shape.pools)]
    assert expected(found, places).startswith(f"0 0 {NONE} {-errno.EINVAL} ")
    done = execute(program, text=" ".join(map(str, places)) + "\n")
    assert done.stdout.splitlines()[1] == f"0 0 {NONE} 0 0 {NONE} 1", done.stderr
