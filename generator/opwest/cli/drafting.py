# SPDX-License-Identifier: Apache-2.0
"""`opwest init`: draft a manifest; never overwrite a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.base.paths import cmake_option, spelled
from opwest.base.resources import resource
from opwest.base.result import Result, counted
from opwest.compiler.folder import refuse_occupied, write_folder
from opwest.drafting.draft import draft_manifest
from opwest.drafting.new_driver import driver_files, driver_names
from opwest.project.disk import refuse_existing, write_new

_HINT = "choose another file with -o, or print the draft with '-o -'"


def draft(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Draft a manifest and write it to a file, or to standard output for `-`."""
    to_stdout = str(options.output) == "-"
    output = Path("manifest.yaml") if to_stdout else options.output
    if not to_stdout:
        refuse_existing(output, _HINT)
    drafted = draft_manifest(options.files, output, options.model, options.target, faults, options.symbols)
    shown = {
        "manifest": None if to_stdout else str(output),
        "mark_count": drafted.marks,
        "operators": list(drafted.operators),
        "left_out": [{"symbol": symbol, "reason": reason} for symbol, reason in drafted.left_out.items()],
        "text": drafted.text,
    }
    if to_stdout:
        return Result(drafted.text.removesuffix("\n"), shown, is_content=True)
    write_new(output, drafted.text, _HINT)
    text = f"{output}: {counted(len(drafted.operators), 'operator')}, {counted(drafted.marks, 'mark')} to fill in"
    if drafted.marks:
        return Result(f"{text} (listed by 'opwest check {output}')", shown)
    verify = '; verify the values marked "guessed"' if "guessed" in drafted.text.partition("version:")[2] else ""
    return Result(f"{text}{verify}\nnext: opwest generate {output} -o app", shown)


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
        f"{folder}: driver of {names.compatible}, {counted(len(files), 'file')} written",
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
