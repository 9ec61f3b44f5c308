# SPDX-License-Identifier: Apache-2.0
"""The output of `opwest tune`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opwest.api.calls import collecting
from opwest.api.tune import TunedLayer, TuneResult
from opwest.api.tune import tune as tune_layers
from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result, counted, table_lines
from opwest.cli.arguments import progress_of
from opwest.runs.progress import StageProgress
from opwest.tuning.tune import offers_text

QEMU = "a model, from instructions counted in QEMU: not of silicon"


class _Progress(StageProgress):
    """Prints the layers that are measured as lines of opwest, and the stages of a build on a board."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(None if options.json or options.quiet else sys.stderr)
        self._lines = progress_of(options)

    def __call__(self, text: str) -> None:
        """Print a line."""
        self._lines(text)


def tune(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Measure on a board or on its core in QEMU; print a table of the layers."""
    done = collecting(tune_layers, faults)(
        options.folder,
        board=options.board,
        core=options.core,
        flash=None if options.flash is None else options.flash.text,
        cmsis_nn=options.cmsis_nn,
        zephyr_base=options.zephyr_base,
        serial=options.serial,
        baud=options.baud,
        timeout=options.timeout,
        progress=_Progress(options),
    )
    return Result(_text(done, options), _json(done, options))


def _text(done: TuneResult, options: argparse.Namespace) -> str:
    flash = done.given_flash
    where = done.source if options.serial else QEMU
    if done.flash.wait_states and not options.serial:
        where += f"; flash {done.flash.text}" + ("" if flash else ", as the import assumes")
    words = [table_text(done.core, done.layers, where)]
    if done.unmeasured:
        names = ", ".join(done.unmeasured)
        words.append(f"not measured, because they do not fit on {options.board}: {names}")
        words.append("  their variants are chosen by the costs of the other tables")
    if flash is not None and flash.wait_states:
        words.append(offers_text(done.constants, done.core, flash))
    if done.uncounted:
        names = ", ".join(done.uncounted)
        words.append(f"not in this table without --cmsis-nn DIR, because they call CMSIS-NN: {names}")
    words.append(f"{done.file}: {counted(done.candidates, 'variant')} of layers measured in {done.seconds:.0f} s")
    words.append(_next(done))
    return "\n".join(words)


def _json(done: TuneResult, options: argparse.Namespace) -> dict[str, Any]:
    layers = [
        {
            "layer": item.layer,
            "variant": item.variant,
            "before": item.before,
            "cycles": item.cycles,
            "cycles_without_stalls": item.cycles_without_stalls,
            "variants": [{"variant": name, "cycles": cycles} for name, cycles in item.variants.items()],
        }
        for item in done.layers
    ]
    constants = [
        {
            "layer": offer.layer,
            "variant": offer.variant,
            "load_count": offer.reads,
            "saved_cycles": offer.saved,
            "bytes": offer.ram,
        }
        for offer in done.constants
    ]
    return {
        "file": str(done.file),
        "core": done.core,
        "source": done.source,
        "flash": done.flash.text if options.serial is None else None,
        "layers": layers,
        "unmeasured": list(done.unmeasured),
        "constants": constants,
        "uncounted": list(done.uncounted),
    }


def table_text(core: str, layers: Sequence[TunedLayer], where: str) -> str:
    """Return the table of the layers; ends without a line end. `where`: the origin of the cycles."""
    rows = [("layer", "variant", "cycles", "other variants")]
    for item in layers:
        others = sorted((cycles, name) for name, cycles in item.variants.items() if name != item.variant)
        variant = item.variant if item.variant == item.before else f"{item.variant}, before {item.before}"
        shown = ", ".join(f"{name} {cycles:,}" for cycles, name in others)
        rows.append((item.layer, variant, f"{item.cycles:,}", shown))
    before, after = sum(item.variants[item.before] for item in layers), sum(item.cycles for item in layers)
    rows.append(("all", "", f"{after:,}", f"before: {before:,}" if after != before else ""))
    without = [item.cycles_without_stalls for item in layers if item.cycles_without_stalls is not None]
    if len(without) == len(layers) and sum(without) < after:
        rows.append(("without wait states", "", f"{sum(without):,}", ""))
    return "\n".join([f"{core} (cycles of {where})", *(f"  {line}" for line in table_lines(rows, {2}))])


def _next(done: TuneResult) -> str:
    """Return the next command, with a given flash if the import has another one."""
    words = "".join(f" --with {library}" for library in done.libraries)
    if done.given_flash is not None and done.given_flash != done.import_flash:
        words += f" --flash {done.given_flash.text}"
    command = f"opwest import {quoted(_shown(done.model))} -o NEW{words} --tuning {quoted(_shown(done.file))}"
    return f"next: {command}, with the other options of this import"


def _shown(path: Path) -> str:
    """Return a path relative to the current directory, if it is in it."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)
