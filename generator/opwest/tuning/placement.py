# SPDX-License-Identifier: Apache-2.0
"""The gain and the cost of the constants of each layer in RAM or TCM instead of flash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from opwest.importers.models.choice.choose import constant_bytes
from opwest.importers.models.choice.geometry import key_of
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.emit.registry import candidates
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.placement import layers_of
from opwest.importers.models.processors import CORES
from opwest.importers.models.request import LIBRARIES
from opwest.records import dataclass
from opwest.tuning.cmsis_nn import CmsisNn
from opwest.tuning.emulator import run
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES
from opwest.tuning.measure import alone, inputs_of


@dataclass(frozen=True)
class Offer:
    """The constants of a layer in RAM."""

    layer: str
    """The value for `opwest import --place`."""
    variant: str
    ram: int
    """Bytes of RAM: the cost."""
    reads: int
    """The number of loads from the constants in a run of the layer."""

    def gain(self, wait_states: int) -> int:
        """Return the cycles that RAM without wait states saves, if each load from flash has wait states: no cache."""
        return self.reads * wait_states


def offers(
    variants: Mapping[Operation, str],
    core: str,
    work: Path,
    progress: Callable[[str], None] = lambda _: None,
    library: CmsisNn | None = None,
) -> list[Offer]:
    """Run the chosen variant of each layer in QEMU; return the layers with constants. Raises EmulatorError."""
    read: dict[tuple[str, str], int] = {}
    distinct = {(key_of(operation), variant): operation for operation, variant in variants.items()}
    progress(f"loads from constants: {len(distinct)} layers in one image")
    machine = MACHINES[core] if library is None else library.machine
    measured = run(list(_candidates(list(distinct.values()), variants)), machine, work)
    for key, one in zip(distinct, measured, strict=True):
        read[key] = one.constants
    found = []
    for operation, variant in variants.items():
        size = constant_bytes(candidates(operation, CORES[core], LIBRARIES)[variant])
        if size:
            found.append(Offer(",".join(layers_of(operation.label)), variant, size, read[key_of(operation), variant]))
    return found


def offers_text(given: Sequence[Offer], core: str, wait_states: int) -> str:
    """Return the table, the greatest gain for a byte first; ends without a line end."""
    order = sorted(given, key=lambda one: (-one.reads / one.ram, one.layer))
    states = "1 wait state" if wait_states == 1 else f"{wait_states} wait states"
    heads = ("layer", "variant", "loads", "cycles saved", "bytes of RAM")
    rows = [(one.layer, one.variant, f"{one.reads:,}", f"{one.gain(wait_states):,}", f"{one.ram:,}") for one in order]
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    lines = [f"constants in RAM ({core}; {states} for each load from flash, without a cache; counted in QEMU)"]
    for row in (heads, *rows):
        cells = [row[i].rjust(widths[i]) if i > 1 else row[i].ljust(widths[i]) for i in range(len(heads))]
        lines.append(f"  {'  '.join(cells).rstrip()}")
    lines.append("  opwest import --place LAYERS=sram copies the constants of layers when the model is opened")
    return "\n".join(lines)


def _candidates(operations: Sequence[Operation], variants: Mapping[Operation, str]) -> Iterator[Candidate]:
    for number, operation in enumerate(operations):
        program = alone(operation)
        emitted = emit_program(program, "A layer.", variants[operation], prefix=f"c{number}_")
        yield Candidate(program, emitted, inputs_of(program), None)
