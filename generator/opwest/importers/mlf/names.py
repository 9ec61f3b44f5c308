# SPDX-License-Identifier: Apache-2.0
"""Names of inputs, outputs, devices and the model: those of the directory, changed only where C forbids them."""

from __future__ import annotations

import re

from opwest.importers.text import free_name
from opwest.model.identifiers import fault_of_name

_LONGEST = 200


def kept_name(name: str, role: str, taken: set[str], remarks: list[str]) -> str:
    """Return a name, and add it to the names in use. If C forbids it, return a similar one and add a remark."""
    reason = fault_of_name(name)
    found = name
    if reason is not None:
        found = re.sub(r"\W", "_", name[:_LONGEST], flags=re.ASCII)
        if fault_of_name(found) is not None:
            found = f"{role}_{found.lstrip('_')}"
    elif len(name) > _LONGEST:
        found, reason = name[:_LONGEST], f"has {len(name)} characters"
    free = free_name(found, taken)
    if free != name:
        words = f"'{name[:_LONGEST]}' {reason or 'is the name of another tensor or device'}"
        remarks.append(f"the {role} is named '{free}': {words}")
    return free
