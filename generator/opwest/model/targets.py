# SPDX-License-Identifier: Apache-2.0
"""The targets of a manifest: named ones, and the manifest's own."""

from __future__ import annotations

from typing import Any

from opwest.diagnostics import nearest
from opwest.manifest.located import Mapping
from opwest.model.context import Context
from opwest.model.model import Target
from opwest.targets import named_targets


def targets_used(context: Context) -> dict[str, Target]:
    """Return the targets that `objects` names; report unknown ones."""
    own = context.section("targets")
    for name in own:
        if name in named_targets():
            context.faults.error(
                f"target {name!r} is one of the named targets",
                own.key_location(name),
                expected="a name of your own",
            )
    known = {**named_targets(), **own}
    used: dict[str, Target] = {}
    for entry in context.items("objects"):
        name = entry.get("target")
        if name is None or name in used:
            continue
        if name not in known:
            context.faults.error(
                f"there is no target {name!r}",
                entry.value_location("target"),
                hint=f"{nearest(name, known)} (`opwest targets` lists them; `targets:` declares your own)",
            )
            continue
        used[name] = make_target(name, known[name])
    return used


def make_target(name: str, entry: dict[str, Any] | Mapping) -> Target:
    """Return the target that an entry of the table or of a manifest declares."""
    return Target(
        name=name,
        machine=entry["machine"],
        bits=entry["bits"],
        endian=entry.get("endian", "little"),
        arch=entry.get("arch"),
        float_abi=entry.get("float_abi"),
        host=tuple(entry.get("host", ())),
        kconfig=tuple((symbol, str(value)) for symbol, value in entry["kconfig"].items()),
    )
