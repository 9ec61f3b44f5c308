# SPDX-License-Identifier: Apache-2.0
"""Check a manifest with faulty values: report the faults that are the same in all of its readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from opwest.base.diagnostics import Diagnostic, Diagnostics
from opwest.manifest.error_recovery import Readings
from opwest.manifest.located import Mapping
from opwest.model.inputs.files import inspect_objects
from opwest.model.readers.resolve import resolve
from opwest.model.readers.variants import check_variants, contexts_of


def check_readings(readings: Readings, folder: Path, boards: Sequence[str], faults: Diagnostics) -> None:
    """Report the errors that do not depend on the faulty values, which are reported.

    Warnings and notes are not reported: most are about values that nothing uses, which the faulty value may change.
    """
    first, *others = [_faults_of(manifest, readings.in_steps, folder, boards, faults) for manifest in readings]
    known = readings.locations()
    for fault in first:
        if fault.severity == "error" and fault.location not in known and all(fault in other for other in others):
            faults.add(fault)


def _faults_of(
    manifest: Mapping, incomplete: bool, folder: Path, boards: Sequence[str], faults: Diagnostics
) -> dict[Diagnostic, None]:
    """Return the faults of one reading, those that are reported first."""
    own = Diagnostics()
    own.sources = faults.sources
    for fault in faults:  # checks that errors make meaningless are omitted
        own.add(fault)
    contexts = [replace(part, incomplete=incomplete) for part in contexts_of(manifest, folder, own)]
    models = [resolve(context, inspect_objects(context), boards) for context in contexts]
    check_variants(models, own)
    return dict.fromkeys(own)
