# SPDX-License-Identifier: Apache-2.0
"""`opwest tune`: measure the variants of the layers of an imported model."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Sequence
from pathlib import Path

from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result, table_lines
from opwest.cli.arguments import progress_of
from opwest.compiler.ir.labels import layer
from opwest.compiler.output.manifest import MANIFEST
from opwest.manifest.load import load_manifest
from opwest.manifest.located import Mapping
from opwest.model.readers.flash import read_flash
from opwest.objects.flash import Flash
from opwest.objects.targets import measured_cores
from opwest.runs.progress import make_progress
from opwest.tuning.machines import core_of_board
from opwest.tuning.measure import measure_in_qemu
from opwest.tuning.on_board import BoardRunner, measure_on_board
from opwest.tuning.results import Measure
from opwest.tuning.tune import Layer, Tuned, offers_text, tune
from opwest.zephyr.processors import flash_of_board
from opwest.zephyr.workspace import build_workspace, find_workspace

QEMU = "a model, from instructions counted in QEMU: not of silicon"


def tune_import(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Measure on a board or on its core in QEMU; print a table of the layers."""
    core = options.core or _core(options, faults)
    start = time.monotonic()
    flash = _flash(options, faults)
    measure = _measure(options, core)
    done = tune(options.folder, core, measure, flash, progress_of(options), options.cmsis_nn)
    where = done.source if options.serial else QEMU
    if done.flash.wait_states and not options.serial:
        where += f"; flash {done.flash.text}" + ("" if flash else ", as the import assumes")
    words = [table_text(core, done.layers, where)]
    if done.left_out:
        names = ", ".join(map(layer, done.left_out))
        words.append(f"not measured, because they do not fit on {options.board}: {names}")
        words.append("  their variants are chosen by the costs of the other tables")
    if flash is not None and flash.wait_states:
        words.append(offers_text(done.offers, core, flash))
    if done.uncounted and options.flash is not None:
        what = f"{layer(done.uncounted[0])} calls CMSIS-NN, whose loads cannot be counted"
        faults.error(what, hint="--cmsis-nn DIR")
        faults.raise_if_errors()
    if done.uncounted:
        names = ", ".join(map(layer, done.uncounted))
        words.append(f"not in this table without --cmsis-nn DIR, because they call CMSIS-NN: {names}")
    seconds = time.monotonic() - start
    words.append(f"{done.file}: {done.candidates} variants of layers measured in {seconds:.0f} s")
    words.append(_next(done, flash))
    layers = [
        {
            "layer": layer(item.label),
            "variant": item.after,
            "before": item.before,
            "cycles": item.cycles[item.after],
            "cycles_without_stalls": item.without_stalls,
            "variants": [{"variant": name, "cycles": cycles} for name, cycles in item.cycles.items()],
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
        for offer in done.offers
    ]
    result = {
        "file": str(done.file),
        "core": core,
        "source": done.source,
        "flash": done.flash.text if options.serial is None else None,
        "layers": layers,
        "unmeasured": list(map(layer, done.left_out)),
        "constants": constants,
        "uncounted": list(map(layer, done.uncounted)),
    }
    return Result("\n".join(words), result)


def _core(options: argparse.Namespace, faults: Diagnostics) -> str:
    """Return the core of the board. Raises OpwestError if it is unknown."""
    workspace = build_workspace(options.zephyr_base) if options.serial else find_workspace(options.zephyr_base)
    core = core_of_board(options.board, workspace)
    cores = ", ".join(measured_cores())
    if core is None and options.serial:
        faults.error(
            f"--board {options.board}: unknown board, or no variants for its core",
            expected=f"a board of the Zephyr tree '{workspace and workspace.base}' with one of: {cores}",
        )
    elif core is None:
        faults.error(
            f"--board {options.board}: its core is unknown, or QEMU has no machine for it",
            expected=f"--core {'|'.join(measured_cores())}",
            hint="other boards are known with their Zephyr tree: --zephyr-base DIR, or in a workspace",
        )
    faults.raise_if_errors()
    assert core is not None
    return core


def _flash(options: argparse.Namespace, faults: Diagnostics) -> Flash | None:
    """Return the flash to model: that of --flash, of the manifest, or of the board; None without one.

    A board has its own. Raises OpwestError.
    """
    if options.serial:
        return None
    flash: Flash | None = options.flash
    if flash is None:
        flash = _stated(options.folder, faults)
    faults.raise_if_errors()
    if flash is None and options.board is not None:
        flash = flash_of_board(options.board, find_workspace(options.zephyr_base))
    return flash


def _stated(folder: Path, faults: Diagnostics) -> Flash | None:
    """Return the flash that the manifests of an import state; None without one."""
    stated: dict[Flash, Path] = {}
    for path in (folder / MANIFEST, *sorted(folder.glob(f"*/{MANIFEST}"))):
        manifest = load_manifest(path, faults) if path.is_file() else None
        flash = read_flash(manifest, faults) if isinstance(manifest, Mapping) else None
        if flash is not None:
            stated[flash] = path
    if len(stated) > 1:
        shown = "; ".join(f"{path}: {flash.text}" for flash, path in stated.items())
        faults.error(f"the manifests state different flash: {shown}", expected="one, or --flash FLASH")
    return next(iter(stated), None)


def _measure(options: argparse.Namespace, core: str) -> Measure:
    """Return the measurement on the board of --serial, or in QEMU."""
    if options.serial is None:
        return functools.partial(measure_in_qemu, core=core)
    run = BoardRunner(options.folder, options, make_progress(quiet=options.json or options.quiet))
    return functools.partial(measure_on_board, core=core, execute=run)


def table_text(core: str, layers: Sequence[Layer], where: str) -> str:
    """Return the table of the layers; ends without a line end. `where`: the origin of the cycles."""
    rows = [("layer", "variant", "cycles", "other variants")]
    for item in layers:
        others = sorted((cycles, name) for name, cycles in item.cycles.items() if name != item.after)
        variant = item.after if item.after == item.before else f"{item.after}, before {item.before}"
        shown = ", ".join(f"{name} {cycles:,}" for cycles, name in others)
        rows.append((layer(item.label), variant, f"{item.cycles[item.after]:,}", shown))
    before, after = (sum(item.cycles[getattr(item, name)] for item in layers) for name in ("before", "after"))
    rows.append(("all", "", f"{after:,}", f"before: {before:,}" if after != before else ""))
    without = [item.without_stalls for item in layers if item.without_stalls is not None]
    if len(without) == len(layers) and sum(without) < after:
        rows.append(("without wait states", "", f"{sum(without):,}", ""))
    return "\n".join([f"{core} (cycles of {where})", *(f"  {line}" for line in table_lines(rows, {2}))])


def _next(done: Tuned, flash: Flash | None) -> str:
    """Return the next command, with a given flash if the import has another one."""
    model, file = _shown(done.imported.model), _shown(done.file)
    new = [library for library in done.libraries if library not in done.imported.options.libraries]
    words = "".join(f" --with {library}" for library in new)
    if flash is not None and flash != done.imported.options.flash:
        words += f" --flash {flash.text}"
    command = f"opwest import {quoted(model)} -o NEW{words} --tuning {quoted(file)}"
    return f"next: {command}, with the other options of this import"


def _shown(path: Path) -> str:
    """Return a path relative to the current directory, if it is in it."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)
