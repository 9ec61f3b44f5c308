# SPDX-License-Identifier: Apache-2.0
"""Measure layers on all cores, and write opwest's own table: estimates, and the layers of well-known models.

    python scripts/default_tuning.py [--core CORE]... [--share SHARE] [--kinds REGEX] --cmsis-nn DIR [MODEL...]

Without --core, all cores; the rows of the others remain. With --kinds, such as 'pool .*int16', only these estimates
are measured, and all other rows remain. The estimates are fitted to random layers of every operation, variant and
dtype (estimated_layers.py); a SHARE below 1 measures fewer of them. Layers of models get rows of their own; without
models, the rows of the table remain. CMSIS-NN is a further candidate, with both roundings of fully connected layers.
QEMU and compilers: docs/tuning.md. To use two processors of the host, run the script twice with different --core.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "generator"), str(ROOT / "tests")]

from estimated_layers import layers  # noqa: E402
from opwest.compiler.ir.program import Operation  # noqa: E402
from opwest.compiler.processors import class_of  # noqa: E402
from opwest.compiler.request import ROUNDINGS, Options  # noqa: E402
from opwest.compiler.selection.costs import Table, estimate_key  # noqa: E402
from opwest.compiler.selection.joins import joined_in_place  # noqa: E402
from opwest.compiler.selection.tuning_files import DEFAULTS, Tables, default_text, read_tables  # noqa: E402
from opwest.imports.prepare import prepare, program_of  # noqa: E402
from opwest.objects.targets import measured_cores  # noqa: E402
from opwest.tuning.measure import LIBRARY, compiled, distinct, functions_of, measure  # noqa: E402
from opwest.tuning.results import Measurements, fitted, table_of  # noqa: E402
from opwest.zephyr.cmsis_nn import checked_cmsis_nn  # noqa: E402


def main() -> None:
    """Write compiler/selection/tuning.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", action="append", choices=measured_cores(), default=[])
    parser.add_argument("--cmsis-nn", type=Path, metavar="DIR", required=True)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--kinds", type=re.compile, metavar="REGEX")
    parser.add_argument("models", metavar="MODEL", nargs="*", type=Path)
    options = parser.parse_args()
    own, random_ones = layers_of(options.models), layers(options.share)
    if options.kinds is not None:
        own, random_ones = (
            [layer for layer in some if options.kinds.fullmatch(estimate_key(layer))] for some in (own, random_ones)
        )
    for core in options.core or measured_cores():
        start = time.monotonic()
        exact, estimated = (measured(some, core, options.cmsis_nn) for some in (own, random_ones))
        old = read_tables().of(core)
        table = table_of(exact, core, has_estimates=False) if own else old
        functions = {**old.functions, **exact.functions, **estimated.functions}
        kept = {} if options.kinds is None else old.estimates
        rows = table.layers if options.kinds is None else {**old.layers, **table.layers}
        estimates = {**kept, **fitted(estimated.results)}
        new = Table(core, rows, estimates, estimated.source, functions=functions)
        # Each core is written at once, and what another run has written remains.
        DEFAULTS.write_text(default_text(Tables({**read_tables().cores, core: new}, {})), encoding="utf-8")
        print(f"{core}: {len(own) + len(random_ones)} layers in {time.monotonic() - start:.0f} s", flush=True)


def layers_of(models: Sequence[Path]) -> list[Operation]:
    """Return the layers of models. Those that can write channels of a concatenation in place are in both ways."""
    programs = []
    for rounding in ROUNDINGS:
        for path in models:
            given = Options(rounding=rounding)
            programs += [program_of(graph, given, str(path)) for graph in prepare(path, given, print).graphs]
    return distinct([*programs, *map(joined_in_place, programs)])


def measured(operations: Sequence[Operation], core: str, cmsis_nn: Path) -> Measurements:
    """Run all candidates of operations, with those of CMSIS-NN if the class of processors has some."""
    with tempfile.TemporaryDirectory() as work:
        called = [operation for operation in operations if functions_of(operation, class_of(core))]
        library = compiled(checked_cmsis_nn(cmsis_nn), called, core, Path(work) / LIBRARY) if called else None
        return measure(operations, core, Path(work), lambda text: print(f"{core}: {text}", flush=True), library)


if __name__ == "__main__":
    main()
