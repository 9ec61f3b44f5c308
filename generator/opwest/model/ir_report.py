# SPDX-License-Identifier: Apache-2.0
"""The output of `opwest inspect` for LLVM IR that cannot be compiled."""

from __future__ import annotations

from typing import Any

from opwest.diagnostics import printable
from opwest.model.ir_inspection import InspectedIr


def uncompiled_as_text(label: str, found: InspectedIr) -> str:
    """Return the facts about a module as aligned text that ends with a newline."""
    defined = sorted(f.name for f in found.module.functions if f.is_definition)
    rows = [
        ("triple", found.module.triple or "none"),
        ("defines", ", ".join(defined) or "no functions"),
        ("state", ", ".join(found.module.state) or "none"),
        ("exportable", f"no: {found.faults[0]}"),
    ]
    lines = [f"{label}: LLVM IR", *(f"  {name:<13} {value}" for name, value in rows)]
    return "\n".join(map(printable, lines)) + "\n"


def uncompiled_as_json(label: str, found: InspectedIr) -> dict[str, Any]:
    """Return the facts about a module as plain JSON values."""
    return {
        "file": label,
        "kind": "llvm-ir",
        "target": found.target.name,
        "triple": found.module.triple,
        "exportable": False,
        "reasons": list(found.faults),
        "functions": sorted(f.name for f in found.module.functions if f.is_definition),
        "state": None,
        "variables": list(found.module.state),
    }
