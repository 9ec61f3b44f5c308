# SPDX-License-Identifier: Apache-2.0
"""The processors and the named targets of each, read from targets.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
import yamlcore

from opwest.base.frozen_dataclass import dataclass

_TRIPLES = {
    "v6S-M": "thumbv6m",
    "v7-M": "thumbv7m",
    "v7E-M": "thumbv7em",
    "v8-M.baseline": "thumbv8m.base",
    "v8-M.mainline": "thumbv8m.main",
    "v8.1-M.mainline": "thumbv8.1m.main",
}
_ARM_LAYOUT = "e-m:e-p:32:32-Fi8-i64:64-v128:64:128-a:0:32-n32-S64"
_MVE_FEATURES: dict[str, list[str]] = {"none": ["-mve"], "integer": ["-mve.fp"], "float": []}
_OF_ENTRY = ("symbol", "kernels", "core", "qemu")
"""Keys that a manifest's target does not have."""


PAIRED = "CONFIG_CPU_CORTEX_M7"
"""The macro of Zephyr for a processor that issues two instructions in a cycle: operators have an order for it."""
RISCV_SPEED = ("-fno-schedule-insns",)
"""Options of GCC for operators that are compiled for speed on RISC-V, as in opwest.cmake.

GCC 12 otherwise moves loads up before it allocates registers, and keeps values of inner loops on the stack.
"""


@dataclass(frozen=True)
class Processor:
    """An entry of targets.yaml, whose comments describe the fields."""

    name: str
    machine: str
    symbol: str | None
    """Zephyr's symbol, without CONFIG_; None: the conditions of its targets select it."""
    kernels: str | None
    core: str | None
    dsp: bool | str
    fpu: tuple[str, ...]
    mve: bool
    has_mcpu: bool
    targets: Mapping[str, dict[str, Any]]
    """By name, in the form of `targets` in a manifest."""
    qemu: Mapping[str, Any] | None


@cache
def processors() -> dict[str, Processor]:
    """Return the processors by name, in the order of the file. LLVM and GCC use the same names for those of Arm."""
    text = Path(__file__).with_name("targets.yaml").read_text(encoding="utf-8")
    # libyaml's parser, if PyYAML was built with it, takes a tenth of the time.
    table: dict[str, dict[str, Any]] = yaml.load(text, Loader=getattr(yamlcore, "CCoreLoader", yamlcore.CoreLoader))
    return {name: _processor(name, entry) for name, entry in table.items()}


@cache
def named_targets() -> dict[str, dict[str, Any]]:
    """Return the named targets of all processors, in the form of `targets` in a manifest."""
    return {name: target for processor in processors().values() for name, target in processor.targets.items()}


@cache
def measured_cores() -> dict[str, Processor]:
    """Return the processors that QEMU measures, by the name of the core in files of measurements."""
    return {
        processor.core: processor
        for processor in processors().values()
        if processor.qemu is not None and processor.core is not None
    }


def _processor(name: str, entry: dict[str, Any]) -> Processor:
    return Processor(
        name,
        entry["machine"],
        entry.get("symbol"),
        entry.get("kernels"),
        entry.get("core"),
        entry.get("dsp", False),
        tuple(entry.get("fpu", ())),
        entry.get("mve", False),
        entry.get("gcc", True),
        MappingProxyType(
            {target: _arm(name, entry, variant) for target, variant in entry["targets"].items()}
            if "targets" in entry
            else {name: {key: value for key, value in entry.items() if key not in _OF_ENTRY}}
        ),
        entry.get("qemu"),
    )


def _arm(name: str, entry: Mapping[str, Any], variant: Mapping[str, str]) -> dict[str, Any]:
    """Return a target of an Arm processor, with its parameters for LLVM and its conditions in Kconfig."""
    fpu, mve = variant.get("fpu", "none"), variant.get("mve", "none")
    float_abi = variant.get("float_abi", "soft" if fpu == "none" else "hard")
    fpus, dsp = entry.get("fpu", ()), entry.get("dsp", False)
    features = ["+soft-float", "-fpregs"] if fpus and fpu == "none" else []  # else LLVM uses the FPU with a soft ABI
    features += ["-fp64"] if fpu == "single" and "double" in fpus else []
    features += _MVE_FEATURES[mve] if entry.get("mve") and fpu != "none" else []
    features += ["-dsp"] if dsp == "optional" else []
    llvm = {"triple": f"{_TRIPLES[entry['arch']]}-unknown-none-eabi{'hf' if float_abi == 'hard' else ''}", "cpu": name}
    kconfig = {f"CONFIG_{entry['symbol']}": "y"}
    if fpus:
        kconfig["CONFIG_FPU"] = "n" if fpu == "none" else "y"
    if fpu != "none":
        kconfig[f"CONFIG_FP_{float_abi.removesuffix('fp').upper()}ABI"] = "y"
        if len(fpus) > 1:
            kconfig["CONFIG_CPU_HAS_FPU_DOUBLE_PRECISION"] = "y" if fpu == "double" else "n"
        if entry.get("mve"):
            kconfig["CONFIG_ARMV8_1_M_MVEI"] = "n" if mve == "none" else "y"
            kconfig["CONFIG_ARMV8_1_M_MVEF"] = "y" if mve == "float" else "n"
    return {
        "machine": "arm",
        "bits": 32,
        "arch": entry["arch"],
        "float_abi": float_abi,
        **({} if dsp == "optional" else {"dsp": dsp}),
        "mve": mve,
        "fpu": fpu,
        "llvm": {**llvm, **({"features": ",".join(features)} if features else {}), "data_layout": _ARM_LAYOUT},
        "kconfig": kconfig,
    }
