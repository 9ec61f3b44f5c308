# SPDX-License-Identifier: Apache-2.0
"""`opwest import`: another compiler's output becomes a folder with a manifest."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from opwest.cli.commands import Result
from opwest.diagnostics import Diagnostics, Location
from opwest.importers.tvm import Imported, Options
from opwest.importers.tvm.child import import_apart
from opwest.model.identifiers import fault_of_name


def import_tvm(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a model through TVM; tell how far it is on standard error."""
    if options.model is not None:
        reason = fault_of_name(options.model)
        if reason is not None:
            faults.error(f"model name {options.model!r} {reason}")
            faults.raise_if_errors()
    wanted = Options(options.model, tuple(dict.fromkeys(options.target)), options.vectors, _tell)
    done = import_apart(options.file, options.output, wanted)
    place = Location(str(options.file))
    for remark in done.remarks:
        faults.note(remark, place)
    for warning in done.warnings:
        faults.warning(warning, place, hint="look at vectors.npz and at `tolerance` before trusting the model")
    return Result(_words(done), {**dataclasses.asdict(done), "folder": str(done.folder)})


def _tell(text: str) -> None:
    print(f"opwest: {text}", file=sys.stderr, flush=True)


def _words(done: Imported) -> str:
    manifest = done.folder / "manifest.yaml"
    return (
        f"{manifest}: {done.operators} operators, {done.steps} steps, {done.constant_bytes} bytes of constants\n"
        f"`opwest generate {manifest} -o app` makes the application"
    )
