# SPDX-License-Identifier: Apache-2.0
"""Measure the layers of models on all cores, and write opwest's own table of measurements with estimates.

    python scripts/default_tuning.py [--core CORE]... [--cmsis-nn DIR] [--estimates-of KIND] MODEL...

Without --core, all cores. The rows of other cores and other layers remain. With --cmsis-nn, only the entries of
CMSIS-NN are written, for both roundings of fully connected layers. With --estimates-of, only the estimates of one kind
of layers are written, such as move: copies. QEMU and compilers: docs/tuning.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "generator"))

from opwest.compiler.processors import class_of
from opwest.compiler.request import ROUNDINGS, Options
from opwest.compiler.selection.costs import kind_of
from opwest.compiler.selection.joins import joined_in_place
from opwest.compiler.selection.tuning_files import DEFAULTS, Tables, merged, read_tables, text_of
from opwest.imports.prepare import prepare, program_of
from opwest.objects.targets import measured_cores
from opwest.tuning.measure import LIBRARY, compiled, distinct, functions_of, measure
from opwest.tuning.results import table_of
from opwest.zephyr.cmsis_nn import checked_cmsis_nn


def main() -> None:
    """Write choice/tuning.yaml."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", action="append", choices=measured_cores(), default=[])
    parser.add_argument("--cmsis-nn", type=Path, metavar="DIR", help="measure CMSIS-NN in this directory")
    parser.add_argument("--estimates-of", metavar="KIND")
    parser.add_argument("models", metavar="MODEL", nargs="+", type=Path)
    options = parser.parse_args()
    programs = []
    for rounding in ROUNDINGS if options.cmsis_nn else ROUNDINGS[:1]:
        for path in options.models:
            given = Options(rounding=rounding)
            prepared = prepare(path, given, print)
            programs += [program_of(graph, given, str(path)) for graph in prepared.graphs]
    # Layers that can write channels of a concatenation in place are measured in both ways.
    operations = distinct([*programs, *map(joined_in_place, programs)])
    kind = options.estimates_of
    if kind is not None:
        operations = [one for one in operations if kind_of(one) == kind]
    found = {}
    for core in options.core or measured_cores():
        some, library = operations, None
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            if options.cmsis_nn:
                some = [one for one in operations if functions_of(one, class_of(core))]
                if not some:  # no class of processors whose variants call it
                    continue
                library = compiled(checked_cmsis_nn(options.cmsis_nn), some, core, Path(work) / LIBRARY)
            done = measure(some, core, Path(work), print, library)
        kept = [one for one in done.results if library is None or one.variant.startswith(LIBRARY)]
        found[core] = table_of(dataclasses.replace(done, results=kept), core, has_estimates=True)
        if kind is not None:
            found[core] = dataclasses.replace(found[core], layers={})
        print(f"{core}: {len(done.results)} variants of {len(some)} layers in {time.monotonic() - start:.0f} s")
    DEFAULTS.write_text(text_of(merged([read_tables(), Tables(found, {})])), encoding="utf-8")


if __name__ == "__main__":
    main()
