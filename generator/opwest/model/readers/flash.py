# SPDX-License-Identifier: Apache-2.0
"""The flash memory that a manifest states."""

from __future__ import annotations

from opwest.base.diagnostics import Diagnostics
from opwest.manifest.located import Mapping
from opwest.objects.flash import NONE, Flash, fault_of


def read_flash(manifest: Mapping, faults: Diagnostics) -> Flash | None:
    """Return `flash` of a manifest that conforms to the schema; None if it is absent, or has a fault."""
    given = manifest.get("flash")
    if not isinstance(given, Mapping):
        return NONE if given == "none" else None
    flash = Flash(**given)
    fault = fault_of(flash)
    if fault is None:
        return flash
    key, expected = fault
    faults.error(f"invalid '{key}' of the flash: {getattr(flash, key)}", given.value_location(key), expected=expected)
    return None
