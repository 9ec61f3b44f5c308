# SPDX-License-Identifier: Apache-2.0
"""The targets of a manifest: those of targets.yaml, and those that it declares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from opwest.base.diagnostics import Location, nearest, similar
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, located_items
from opwest.model.types.builds import Target
from opwest.objects.compat import (
    ARM_ARCHITECTURES,
    FLOAT_ABIS,
    FPU_ORDER,
    ISA_STRING,
    MVE_ORDER,
    WORD_SIZES,
    Fault,
    abi_faults,
    isa_extensions,
)
from opwest.objects.elf import COMMON_MACHINES, machines
from opwest.objects.facts import Abi, Member
from opwest.objects.llvm.facts import LlvmTarget
from opwest.objects.targets import named_targets


def read_targets(context: Context) -> tuple[dict[str, Target], tuple[Target, ...]]:
    """Return the targets that `objects` names, and those that the manifest declares; report faulty ones."""
    own = context.section("targets")
    unusable: set[str] = set()
    for name in own:
        if name in named_targets():
            context.faults.error(
                f"target {name!r} redefines a built-in target",
                own.key_location(name),
                expected="another target name",
            )
            unusable.add(name)
        if not _check_values(context, name, own[name]):
            unusable.add(name)
    used: dict[str, Target] = {}
    for entry in context.items("objects"):
        named = [(entry["target"], entry.value_location("target"))] if "target" in entry else []
        for name, at in named + located_items(context.items("targets", entry)):
            if name in used or name in unusable:
                continue
            target = known_target(context, name, at)
            if target is not None:
                used[name] = target
    return used, tuple(make_target(name, own[name]) for name in own if name not in unusable)


def known_target(context: Context, name: str, at: Location) -> Target | None:
    """Return a target of targets.yaml or of the manifest; report an unknown one."""
    known = {**named_targets(), **context.section("targets")}
    if name in known:
        return make_target(name, known[name])
    context.faults.error(
        f"unknown target {name!r}",
        at,
        hint=f"{nearest(name, known)} (`opwest targets` lists all; declare others under `targets:`)",
    )
    return None


def _check_values(context: Context, name: str, entry: Mapping) -> bool:
    """Return whether the values of a target are valid for its machine; report those that are not."""
    before = len(context.faults)
    machine = entry["machine"]
    if machine not in COMMON_MACHINES and machine not in machines():
        context.faults.error(
            f"unknown machine {machine!r} in target {name!r}",
            entry.value_location("machine"),
            expected="arm, riscv, x86-64, i386, aarch64, or another ELF machine: xtensa, arc_compact2, mips, …",
            hint=similar(machine, machines()) or "`opwest inspect` prints the machine of an object",
        )
        return False
    bits = WORD_SIZES.get(machine, entry["bits"])
    if bits != entry["bits"]:
        context.faults.error(
            f"invalid word size {entry['bits']} for machine {machine} in target {name!r}",
            entry.value_location("bits"),
            expected=str(bits),
        )
    _check_architecture(context, name, machine, entry)
    if "float_abi" in entry and entry["float_abi"] not in FLOAT_ABIS.get(machine, ()):
        _report_value(context, name, entry, "float_abi", ", ".join(FLOAT_ABIS.get(machine, ())))
    for key in ("dsp", "mve", "fpu"):
        if key in entry and machine != "arm":
            _report_value(context, name, entry, key, "")
    return len(context.faults) == before


def _check_architecture(context: Context, name: str, machine: str, entry: Mapping) -> None:
    if "arch" not in entry:
        return
    arch = entry["arch"]
    if machine == "riscv":
        isa = ISA_STRING.fullmatch(arch)
        if isa is None or int(isa[1]) != entry["bits"]:
            _report_value(context, name, entry, "arch", f"an ISA string such as rv{entry['bits']}imac_zicsr")
    elif machine != "arm":
        _report_value(context, name, entry, "arch", "")
    elif arch not in ARM_ARCHITECTURES:
        plain = {architecture.lower().replace("-", ""): architecture for architecture in ARM_ARCHITECTURES}
        close = plain.get(arch.lower().replace("-", "").removeprefix("arm"))
        hint = f"did you mean {close!r}?" if close else similar(arch, ARM_ARCHITECTURES)
        _report_value(context, name, entry, "arch", ", ".join(ARM_ARCHITECTURES), hint)


def _report_value(context: Context, name: str, entry: Mapping, key: str, known: str, hint: str | None = None) -> None:
    machine, value = entry["machine"], entry[key]
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    context.faults.error(
        f"invalid {key} {shown} for machine {machine} in target {name!r}",
        entry.value_location(key),
        expected=known or f"no {key}: objects for {machine} do not record it",
        hint=hint,
    )


def make_target(name: str, entry: dict[str, Any] | Mapping) -> Target:
    """Return the target of an entry of targets.yaml or of a manifest."""
    return Target(
        name=name,
        machine=entry["machine"],
        bits=entry["bits"],
        endian=entry.get("endian", "little"),
        arch=entry.get("arch"),
        float_abi=entry.get("float_abi"),
        dsp=entry.get("dsp"),
        mve=entry.get("mve"),
        fpu=entry.get("fpu"),
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


@dataclass(frozen=True)
class OwnTarget:
    """A target for `targets:` of the manifest, different from all named targets."""

    name: str
    keys: tuple[tuple[str, str | int], ...]
    """All keys but `kconfig`, which objects do not record."""


def fitting(members: Sequence[Member], name: str) -> list[str]:
    """Return the named targets that objects can be linked for, the nearest first.

    A target with the name of a directory in `name` precedes all others. Next are the same architecture, the same float
    ABI, and the fewest additional extensions.
    """
    abis = {member.abi: None for member in members}
    parts = PurePosixPath(name).parts[:-1]
    ranked = []
    for order, (target, entry) in enumerate(named_targets().items()):
        required = make_target(target, entry)
        if not any(abi_faults(abi, required) for abi in abis):
            ranked.append((target not in parts, *_distance(next(iter(abis)), required), order, target))
    return [str(rank[-1]) for rank in sorted(ranked)]


def faults_for(members: Sequence[Member], target: str) -> list[Fault]:
    """Return the reasons why objects cannot be linked for a named target."""
    required = make_target(target, named_targets()[target])
    return list(dict.fromkeys(fault for member in members for fault in abi_faults(member.abi, required)))


def _distance(abi: Abi, target: Target) -> tuple[int, int, int]:
    """Return the differences between objects and a target: architecture, float ABI, additional extensions."""
    architecture = 0
    if abi.arch and target.arch and abi.machine == "riscv":
        architecture = len(isa_extensions(target.arch) - isa_extensions(abi.arch))
    elif abi.arch and target.arch:
        architecture = int(abi.arch != target.arch)
    float_abi = int(abi.float_abi not in (None, "any", target.float_abi))
    extras = 0
    if abi.machine == "arm":
        extras += FPU_ORDER.index(target.fpu or "none") - FPU_ORDER.index(abi.fpu or "none")
        extras += MVE_ORDER.index(target.mve or "none") - MVE_ORDER.index(abi.mve or "none")
    return architecture, float_abi, extras


def own_target(abi: Abi) -> OwnTarget:
    """Return a target that objects can be linked for."""
    keys: list[tuple[str, str | int]] = [("machine", abi.machine), ("bits", abi.bits)]
    if abi.endian != "little":
        keys.append(("endian", abi.endian))
    arch = re.sub(r"(?<=[a-z])\d+p\d+", "", abi.arch) if abi.arch and abi.machine == "riscv" else abi.arch
    if arch and abi.machine in ("arm", "riscv"):
        keys.append(("arch", arch))
    if abi.float_abi in FLOAT_ABIS.get(abi.machine, ()):
        keys.append(("float_abi", str(abi.float_abi)))
    words = [abi.machine, *(str(value) for key, value in keys if key in ("endian", "arch", "float_abi"))]
    return OwnTarget(re.sub(r"[^A-Za-z0-9_.+-]", "_", "-".join(words)), tuple(keys))
