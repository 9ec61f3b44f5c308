# SPDX-License-Identifier: Apache-2.0
"""`opwest new-driver`: write the Zephyr module of a new accelerator driver to a new directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from opwest.diagnostics import Diagnostics, OpwestError
from opwest.importers.folder import refuse_occupied, write_folder
from opwest.new_driver.files import driver_files
from opwest.new_driver.names import driver_names
from opwest.resources import resource
from opwest.result import Result
from opwest.system.commands import quoted
from opwest.system.paths import cmake_option, spelled


def new_driver(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Check the names and the directory, then write all files or none."""
    names = driver_names(options.name, options.compatible, faults)
    folder = options.output or Path(options.name)
    try:
        refuse_occupied(folder)
    except OpwestError as error:
        for fault in error.diagnostics:
            faults.add(fault)
    faults.raise_if_errors()
    files = driver_files(names)
    write_folder(folder, files)
    runtime = resource("zephyr_module")
    host, conformance = (quoted(spelled(folder / "tests" / name)) for name in ("host", "conformance"))
    lines = [
        f"{folder}: driver of {names.compatible}, {len(files)} files written",
        f"test it on this machine: make -C {host} {quoted(f'OPWEST={spelled(runtime)}')}",
        f"and under Zephyr: west build -b native_sim/native/64 {conformance} -t run "
        f"-- {quoted(cmake_option('EXTRA_ZEPHYR_MODULES', runtime))}",
    ]
    shown = {
        "directory": str(folder),
        "name": names.name,
        "compatible": names.compatible,
        "runtime": str(runtime),
        "written": sorted(files),
    }
    return Result("\n".join(lines), shown)
