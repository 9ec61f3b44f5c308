# SPDX-License-Identifier: Apache-2.0
"""The targets of a manifest: named ones, and the manifest's own."""

from __future__ import annotations

from typing import Any

from opwest.diagnostics import nearest
from opwest.llvm.facts import LlvmTarget
from opwest.manifest.located import Mapping
from opwest.model.context import Context, located_items
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
        named = [(entry["target"], entry.value_location("target"))] if "target" in entry else []
        for name, at in named + located_items(context.items("targets", entry)):
            if name in used:
                continue
            if name not in known:
                context.faults.error(
                    f"there is no target {name!r}",
                    at,
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
        llvm=_llvm(name, entry),
    )


def _llvm(name: str, entry: dict[str, Any] | Mapping) -> LlvmTarget | None:
    given = entry.get("llvm")
    if given is None:
        return None
    return LlvmTarget(
        name=name,
        triple=given["triple"],
        cpu=given["cpu"],
        features=given.get("features", ""),
        float_abi=entry.get("float_abi"),
        machine=entry["machine"],
        bits=entry["bits"],
        abi=given.get("abi", ""),
        data_layout=given.get("data_layout", ""),
    )
