# SPDX-License-Identifier: Apache-2.0
"""`opwest.tune`: measure the variants of the layers of an imported model."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from opwest.api.calls import AnyPath, CallResult, api_function, check_choices, path_of
from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.labels import layer
from opwest.compiler.output.manifest import MANIFEST
from opwest.manifest.load import load_manifest
from opwest.manifest.located import Mapping as LocatedMapping
from opwest.model.readers.flash import read_flash
from opwest.objects.flash import Flash, flash_of_text
from opwest.objects.targets import measured_cores
from opwest.runs.options import BAUD, TIMEOUT, ImageOptions
from opwest.runs.progress import progress_to
from opwest.tuning.machines import core_of_board
from opwest.tuning.measure import measure_in_qemu
from opwest.tuning.on_board import BoardRunner, measure_on_board
from opwest.tuning.results import Measure
from opwest.tuning.tune import PlacementOffer, Tuned
from opwest.tuning.tune import tune as measure_layers
from opwest.zephyr.processors import flash_of_board
from opwest.zephyr.workspace import build_workspace, find_workspace


@dataclass(frozen=True)
class TunedLayer:
    """A layer with the costs of its variants."""

    layer: str
    variant: str
    """The variant that the measurements choose."""
    before: str
    """The variant that the import chooses without them."""
    cycles: int
    """Of `variant`."""
    variants: Mapping[str, int]
    """The cycles of each variant."""
    cycles_without_stalls: int | None
    """The cycles of `variant` without wait states of flash, if they were counted."""


@dataclass(frozen=True)
class TuneResult(CallResult):
    """The measured layers of a model, and the table for `import_model(..., tuning=file)`."""

    file: Path
    core: str
    source: str
    """The origin of the cycles: the emulator, or the board with its counter."""
    layers: tuple[TunedLayer, ...]
    candidates: int
    """The number of measured variants of different layers."""
    seconds: float
    unmeasured: tuple[str, ...]
    """The layers that do not fit on the board: their costs are those of other tables."""
    uncounted: tuple[str, ...]
    """The layers whose loads cannot be counted, because they call CMSIS-NN."""
    constants: tuple[PlacementOffer, ...]
    """What constants in RAM save, with wait states of a given flash."""
    flash: Flash
    """The flash of the costs."""
    given_flash: Flash | None
    """That of the call, of the manifest, or of the board; None if the import assumes it."""
    model: Path
    """The imported model."""
    libraries: tuple[str, ...]
    """The libraries to give to `import_model` that the import does not have."""
    import_flash: Flash
    """The flash that the import has."""


@api_function
def tune(
    faults: Diagnostics,
    folder: AnyPath,
    *,
    board: str | None = None,
    core: str | None = None,
    flash: str | None = None,
    cmsis_nn: AnyPath | None = None,
    zephyr_base: AnyPath | None = None,
    serial: str | None = None,
    baud: int | None = None,
    timeout: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> TuneResult:
    """Measure all variants of the layers of an import; store the costs in its tuning.yaml.

    They run in QEMU on `core`, or on the core of `board`; with `serial` on the board itself.
    """
    _check(board, core, flash, cmsis_nn, serial, {"baud": baud, "timeout": timeout}, faults)
    directory, base = Path(folder), path_of(zephyr_base)
    start = time.monotonic()
    core = core or _core(board or "", base, faults, connected=serial is not None)
    check_choices(faults, ("core", core, measured_cores()))
    given = None if serial is not None else _flash(directory, board, flash, base, faults)
    measure: Measure = functools.partial(measure_in_qemu, core=core)
    if serial is not None:
        image = ImageOptions(
            directory,
            board or "",
            serial,
            baud=BAUD if baud is None else baud,
            timeout=TIMEOUT if timeout is None else timeout,
            zephyr_base=base,
            given=frozenset(["baud"] if baud is not None else []),
        )
        run = BoardRunner(directory, image, progress_to(progress))
        measure = functools.partial(measure_on_board, core=core, execute=run)
    done = measure_layers(directory, core, measure, given, progress or (lambda _: None), path_of(cmsis_nn))
    if done.uncounted and flash is not None:
        what = f"{layer(done.uncounted[0])} calls CMSIS-NN, whose loads cannot be counted"
        faults.error(what, hint="--cmsis-nn DIR")
        faults.raise_if_errors()
    return _result(done, core, given, time.monotonic() - start)


def _result(done: Tuned, core: str, given: Flash | None, seconds: float) -> TuneResult:
    return TuneResult(
        done.file,
        core,
        done.source,
        tuple(
            TunedLayer(
                layer(item.label),
                item.after,
                item.before,
                item.cycles[item.after],
                dict(item.cycles),
                item.without_stalls,
            )
            for item in done.layers
        ),
        done.candidates,
        seconds,
        tuple(map(layer, done.left_out)),
        tuple(map(layer, done.uncounted)),
        tuple(done.offers),
        done.flash,
        given,
        done.imported.model,
        tuple(library for library in done.libraries if library not in done.imported.options.libraries),
        done.imported.options.flash,
    )


def _check(
    board: str | None,
    core: str | None,
    flash: str | None,
    cmsis_nn: AnyPath | None,
    serial: str | None,
    device: Mapping[str, float | None],
    faults: Diagnostics,
) -> None:
    """Report options that have no effect with the others. Raises OpwestError."""
    if board is not None and core is not None:
        faults.error("--core excludes --board")
    if serial is None:
        if board is None and core is None:
            faults.error("no processor is given", expected="--board BOARD, or --core CORE")
        for name, value in device.items():
            if value is not None:
                faults.error(f"--{name} requires --serial")
    else:
        if board is None:
            faults.error("--serial requires --board", hint="--core measures in QEMU")
        if flash is not None:
            faults.error("--flash excludes --serial", hint="only QEMU models the flash: the board has its own")
        if cmsis_nn is not None:
            faults.error("--cmsis-nn excludes --serial", hint="CMSIS-NN is measured in QEMU: leave out --serial")
    faults.raise_if_errors()


def _core(board: str, zephyr_base: Path | None, faults: Diagnostics, *, connected: bool) -> str:
    """Return the core of the board. Raises OpwestError if it is unknown."""
    workspace = build_workspace(zephyr_base) if connected else find_workspace(zephyr_base)
    core = core_of_board(board, workspace)
    cores = ", ".join(measured_cores())
    if core is None and connected:
        faults.error(
            f"--board {board}: unknown board, or no variants for its core",
            expected=f"a board of the Zephyr tree '{workspace and workspace.base}' with one of: {cores}",
        )
    elif core is None:
        faults.error(
            f"--board {board}: its core is unknown, or QEMU has no machine for it",
            expected=f"--core {'|'.join(measured_cores())}",
            hint="other boards are known with their Zephyr tree: --zephyr-base DIR, or in a workspace",
        )
    faults.raise_if_errors()
    assert core is not None
    return core


def _flash(
    folder: Path, board: str | None, given: str | None, zephyr_base: Path | None, faults: Diagnostics
) -> Flash | None:
    """Return the flash to model: the given one, that of the manifest, or of the board; None without one.

    Raises OpwestError.
    """
    flash = None
    if given is not None:
        try:
            flash = flash_of_text(given)
        except ValueError as error:
            faults.error(f"invalid --flash {given!r}: {error}")
    else:
        flash = _stated(folder, faults)
    faults.raise_if_errors()
    if flash is None and board is not None:
        flash = flash_of_board(board, find_workspace(zephyr_base))
    return flash


def _stated(folder: Path, faults: Diagnostics) -> Flash | None:
    """Return the flash that the manifests of an import state; None without one."""
    stated: dict[Flash, Path] = {}
    for path in (folder / MANIFEST, *sorted(folder.glob(f"*/{MANIFEST}"))):
        manifest = load_manifest(path, faults) if path.is_file() else None
        flash = read_flash(manifest, faults) if isinstance(manifest, LocatedMapping) else None
        if flash is not None:
            stated[flash] = path
    if len(stated) > 1:
        shown = "; ".join(f"{path}: {flash.text}" for flash, path in stated.items())
        faults.error(f"the manifests state different flash: {shown}", expected="one, or --flash FLASH")
    return next(iter(stated), None)
