# SPDX-License-Identifier: Apache-2.0
"""The classes of processors that have variants of operators: their targets, and the core whose costs apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opwest.base.frozen_dataclass import dataclass

CORES = {
    "cortex-m0plus": "portable",
    "cortex-m3": "mla",
    "cortex-m4": "dsp",
    "cortex-m7": "dsp",
    "cortex-m33": "dsp",
    "cortex-m55": "mve",
    "rv32": "portable",
}
"""The cores of measurements, and the class of processors of each."""


@dataclass(frozen=True)
class Processor:
    """A class of processors."""

    name: str
    """As in the names of variants of operators."""
    core: str
    """The core whose costs decide, unless a file of measurements names another one."""
    targets: tuple[str, ...]
    declared: Mapping[str, Mapping[str, Any]]
    """Targets that are not built in: entries of `targets` of a manifest."""


def processors() -> tuple[Processor, ...]:
    """Return the classes, with the named targets that each includes."""
    # The parser of commands needs CORES, but not a reader of YAML.
    from opwest.objects.targets import named_targets

    found: dict[str, list[str]] = {"mla": [], "dsp": [], "mve": []}
    declared: dict[str, Mapping[str, Any]] = {}
    for name, entry in named_targets().items():
        if entry["machine"] != "arm":
            continue
        if entry.get("mve", "none") != "none":
            found["mve"].append(name)
        elif entry.get("dsp"):
            found["dsp"].append(name)
        elif entry["arch"] == "v7-M":
            found["mla"].append(name)
        elif entry["arch"] == "v8-M.mainline":
            declared[f"{name}-dsp"] = _with_dsp(entry)
    return (
        Processor("mla", "cortex-m3", tuple(found["mla"]), {}),
        Processor("dsp", "cortex-m4", (*found["dsp"], *declared), declared),
        Processor("mve", "cortex-m55", tuple(found["mve"]), {}),
    )


def _with_dsp(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a target of v8-M, where the DSP extension is optional, with this extension."""
    llvm = dict(entry["llvm"])
    features = [feature for feature in llvm.pop("features", "").split(",") if feature not in ("", "-dsp")]
    if features:
        llvm["features"] = ",".join(features)
    return {**entry, "dsp": True, "llvm": llvm, "kconfig": {**entry["kconfig"], "CONFIG_ARMV8_M_DSP": "y"}}
