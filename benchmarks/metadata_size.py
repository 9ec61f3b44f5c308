# SPDX-License-Identifier: Apache-2.0
"""Bytes of the metadata module on Cortex-M3, with the C and the LLVM back end, for models of several sizes.

The modules are linked with --gc-sections (arm-none-eabi-gcc -Os for C), each time with another root:

  metadata    <model>_model and its references
  registry    the additional bytes of <model>_registry: entries, displacements, adapters
  run         <model>_open, _run and _close alone
  unused      metadata and registry that remain if only run is called: must be 0
  <part>      the additional bytes of an optional part, in an image with <model>_model

The linker replaces operators by a stub, so that only the module is counted. The limits: at most 32 bytes per operator
plus its name, 24 per argument and 4 per dimension for the metadata, equal shapes and strings stored once. The
fixed part of a model (its name, struct opwest_model and opwest_registry, inputs, outputs, pools) and the steps (4
bytes each) are counted and printed separately.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import (
    DENSE,
    ProcessError,
    Report,
    SkippedError,
    execute,
    opwest_command,
    parser,
    positive,
    require,
    write_model,
)

SIZES = (10, 100)
COMPILER = "arm-none-eabi-gcc"
FLAGS = shlex.split(
    "-Os -std=c99 -ffreestanding -mcpu=cortex-m3 -mthumb -ffunction-sections -fdata-sections -fno-common"
)
BACK_ENDS = ("c", "llvm")
KINDS = ("text", "rodata", "data", "bss")
PER_OPERATOR, PER_ARGUMENT, PER_DIMENSION = 32, 24, 4
PARTS = ("build", "constants", "buffers", "pool_places", "step_bindings", "details")
"""The optional parts; `details` refers to all of them."""
ROOTS = {
    "metadata": ("chain_model",),
    "metadata+registry": ("chain_model", "chain_registry"),
    "run": ("chain_open", "chain_run", "chain_close"),
    **{part: ("chain_model", f"chain_{part}") for part in PARTS},
    "all": ("chain_model", "chain_registry", "chain_open", "chain_run", "chain_close"),
}


def link(work: Path, objects: Sequence[Path], roots: Sequence[str]) -> dict[str, int]:
    """Return the bytes of the module in a program that refers to `roots`, by kind."""
    image = work / "image.elf"
    script = work / "kinds.ld"
    # Constants of the model's parameters are not metadata.
    script.write_text(
        "SECTIONS {\n"
        "  .parameters : { *(.rodata.chain_constant_* .rodata.*.chain_constant_*) }\n"
        "  .text : { *(.text .text.*) }\n  .rodata : { *(.rodata .rodata.*) }\n"
        "  .data : { *(.data .data.*) }\n  .bss : { *(.bss .bss.* COMMON) }\n"
        "  /DISCARD/ : { *(.comment .note* .ARM.attributes) }\n}\n"
    )
    undefined = [f"-Wl,-u,{root}" for root in roots]
    options = ["-nostdlib", "-Wl,--gc-sections", "-Wl,-e,0", "-Wl,--unresolved-symbols=ignore-all"]
    execute([COMPILER, *FLAGS, *options, *undefined, f"-T{script}", *objects, "-o", image])
    found = dict.fromkeys(KINDS, 0)
    for name, size in re.findall(r"^(\.\w+)\s+(\d+)\s", execute(["arm-none-eabi-size", "-A", image]), re.MULTILINE):
        if name[1:] in found:
            found[name[1:]] = int(size)
    return found


def modules(work: Path, count: int) -> dict[str, list[Path]]:
    """Return the objects of the metadata module of each back end."""
    compiler = [COMPILER, *FLAGS]
    manifest = write_model(work / "source", count, "cortex-m3", compiler, arguments=DENSE, body="return 0;")
    found = {}
    for back_end in BACK_ENDS:
        app = work / back_end
        execute([*opwest_command(), "generate", manifest, "-o", app, f"--metadata={back_end}"])
        model = app / "models" / "chain"
        if back_end == "llvm":
            found[back_end] = [model / "objects" / "cortex-m3" / "chain_metadata.o"]
            continue
        found[back_end] = []
        for part in ("metadata", "run"):
            path = work / f"{part}.o"
            includes = [f"-I{model / 'include'}", f"-I{app / 'modules' / 'opwest' / 'include'}"]
            execute([*compiler, *includes, "-c", model / "src" / f"chain_{part}.c", "-o", path])
            found[back_end].append(path)
    return found


def allowed(count: int) -> int:
    """Return the limits of metadata and registry for `count` operators, including the fixed part of a model."""
    names = sum(len(f"op_{i:05d}") + 1 for i in range(count))
    # struct opwest_model (48) and opwest_registry (20), two tensors, one pool, and their names.
    per_model = 48 + 20 + len("chain\0") + 24 * 2 + 12 + len("sram\0x\0y\0")
    arguments = sum(len(a.role) + 1 for a in DENSE)
    shapes = len({a.elements for a in DENSE}) * PER_DIMENSION
    each = PER_OPERATOR + PER_ARGUMENT * len(DENSE) + 4
    # Padding: strings and tables are aligned to 4 bytes at most, once each.
    return names + per_model + arguments + shapes + each * count + 32


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), metavar="N", help="operators")
    arguments: argparse.Namespace = options.parse_args()
    report = Report("Size of the metadata module on Cortex-M3")
    with tempfile.TemporaryDirectory() as temporary:
        root = arguments.keep or Path(temporary)
        try:
            require(COMPILER, "arm-none-eabi-size")
            for count in arguments.sizes:
                measure_size(report, root / str(count), count)
        except SkippedError as reason:
            report.skip("the metadata module", reason)
    return report.finish(arguments.json)


def measure_size(report: Report, work: Path, count: int) -> None:
    """Measure the module of a model of `count` operators and compare it with the limits."""
    rows = []
    sizes: dict[tuple[str, str], dict[str, int]] = {}
    for back_end, objects in modules(work, count).items():
        for what, roots in ROOTS.items():
            sizes[back_end, what] = found = link(work, objects, roots)
            rows.append([f"{back_end}: {what}", *(found[kind] for kind in KINDS), sum(found.values())])
    report.table(f"{count} operators of {len(DENSE)} arguments, bytes", ("module", *KINDS, "all"), rows, "bytes")
    parts = [
        [back_end, *(sum(sizes[back_end, part].values()) - sum(sizes[back_end, "metadata"].values()) for part in PARTS)]
        for back_end in BACK_ENDS
    ]
    report.table(f"{count} operators: additional bytes of optional parts", ("back end", *PARTS), parts, "bytes")
    each: list[list[Any]] = []
    for back_end in BACK_ENDS:
        metadata, both = sizes[back_end, "metadata"], sizes[back_end, "metadata+registry"]
        run, everything = sizes[back_end, "run"], sizes[back_end, "all"]
        head = f"{back_end}, {count} operators"
        adapters = both["text"] - metadata["text"]
        registry = both["rodata"] - metadata["rodata"]
        each.append(
            [
                f"{back_end}, {count} operators",
                (metadata["rodata"] + metadata["text"]) / count,
                registry / count,
                adapters / count,
            ]
        )
        # 32 bytes hold an operator's 12 of metadata, 8 of an entry, about 1 of displacements, and its adapter.
        total = both["rodata"] + both["text"]
        report.limit(f"{head}: metadata, registry and adapters", total, allowed(count), " bytes")
        report.limit(f"{head}: data and bss", everything["data"] + everything["bss"], 0, " bytes")
        # run itself refers to the model's name, for the log.
        left = run["rodata"] + run["data"] + run["bss"] - len("chain\0")
        report.limit(f"{head}: metadata and registry where only run is called", left, 0, " bytes")
    columns = ("back end", "metadata", "registry", "adapters")
    report.table("Bytes per operator, of metadata and of the additional registry", columns, each, "bytes")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ProcessError as fault:
        sys.exit(str(fault))
