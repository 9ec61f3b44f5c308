# SPDX-License-Identifier: Apache-2.0
"""The classes of processors that have variants of operators: their targets, and the core whose costs apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.targets import measured_cores, processors


@dataclass(frozen=True)
class ProcessorClass:
    """A class of processors."""

    name: str
    """As in the names of variants of operators."""
    core: str
    """The core whose costs decide, unless a file of measurements names another one."""
    targets: tuple[str, ...]
    """Without any, no configuration of Zephyr selects the class, and only `--kernels` chooses its variants."""
    declared: Mapping[str, Mapping[str, Any]]
    """Targets that are not built in: entries of `targets` of a manifest."""


def class_of(core: str) -> str:
    """Return the class of a core of measurements."""
    return measured_cores()[core].kernels or "portable"


def processor_classes() -> tuple[ProcessorClass, ...]:
    """Return the classes, with the named targets that each includes."""
    targets: dict[str, list[str]] = {"mla": [], "dsp": [], "mve": []}
    declared: dict[str, Mapping[str, Any]] = {}
    for processor in processors().values():
        for name, target in processor.targets.items():
            if target.get("mve", "none") != "none":
                targets["mve"].append(name)
            elif target.get("dsp"):
                targets["dsp"].append(name)
            elif processor.kernels == "mla":
                targets["mla"].append(name)
            elif processor.dsp == "optional":
                declared[f"{name}-dsp"] = _with_dsp(target)
    return (
        ProcessorClass("mla", "cortex-m3", tuple(targets["mla"]), {}),
        ProcessorClass("dsp", "cortex-m4", (*targets["dsp"], *declared), declared),
        ProcessorClass("mve", "cortex-m55", tuple(targets["mve"]), {}),
        ProcessorClass("rvv", "rv32-v", (), {}),
    )


def _with_dsp(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a target of v8-M, where the DSP extension is optional, with this extension."""
    llvm = dict(entry["llvm"])
    features = [feature for feature in llvm.pop("features", "").split(",") if feature not in ("", "-dsp")]
    if features:
        llvm["features"] = ",".join(features)
    return {**entry, "dsp": True, "llvm": llvm, "kconfig": {**entry["kconfig"], "CONFIG_ARMV8_M_DSP": "y"}}
