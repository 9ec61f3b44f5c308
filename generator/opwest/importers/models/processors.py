# SPDX-License-Identifier: Apache-2.0
"""The classes of processors that have variants of operators: their targets, and the core whose costs apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opwest.records import dataclass
from opwest.targets import named_targets


@dataclass(frozen=True)
class Processor:
    """A class of processors."""

    name: str
    """As in the names of variants of operators."""
    core: str
    """The core of the table of measurements."""
    targets: tuple[str, ...]
    declared: Mapping[str, Mapping[str, Any]]
    """Targets that are not built in: entries of `targets` of a manifest."""


M33_DSP = "cortex-m33-dsp"
"""The DSP extension of a Cortex-M33 is optional."""
_M33_DSP = {
    "machine": "arm",
    "bits": 32,
    "arch": "v8-M.mainline",
    "dsp": True,
    "mve": "none",
    "kconfig": {"CONFIG_CPU_CORTEX_M33": "y", "CONFIG_ARMV8_M_DSP": "y"},
}


def processors() -> tuple[Processor, ...]:
    """Return the classes, with the named targets that each includes."""
    found: dict[str, list[str]] = {"mla": [], "dsp": [], "mve": []}
    for name, entry in named_targets().items():
        if entry["machine"] != "arm":
            continue
        if entry.get("mve", "none") != "none":
            found["mve"].append(name)
        elif entry.get("dsp"):
            found["dsp"].append(name)
        elif entry["arch"] == "v7-M":
            found["mla"].append(name)
    return (
        Processor("mla", "cortex-m3", tuple(found["mla"]), {}),
        Processor("dsp", "cortex-m4", (*found["dsp"], M33_DSP), {M33_DSP: _M33_DSP}),
        Processor("mve", "cortex-m55", tuple(found["mve"]), {}),
    )
