# SPDX-License-Identifier: Apache-2.0
"""Detection of the target of objects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from opwest.model.targets import make_target, target_abi
from opwest.objects.compat import FLOAT_ABIS, Fault, TargetAbi, abi_faults, isa_extensions
from opwest.objects.facts import Abi, Member
from opwest.records import dataclass
from opwest.targets import named_targets

_MVE = ("none", "integer", "float")
_FPU = ("none", "single", "double")


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
    for order, target in enumerate(named_targets()):
        required = _abi(target)
        if not any(abi_faults(abi, required) for abi in abis):
            ranked.append((target not in parts, *_distance(next(iter(abis)), required), order, target))
    return [str(one[-1]) for one in sorted(ranked)]


def faults_for(members: Sequence[Member], target: str) -> list[Fault]:
    """Return the reasons why objects cannot be linked for a named target."""
    required = _abi(target)
    return list(dict.fromkeys(fault for member in members for fault in abi_faults(member.abi, required)))


def _abi(target: str) -> TargetAbi:
    return target_abi(make_target(target, named_targets()[target]))


def _distance(abi: Abi, target: TargetAbi) -> tuple[int, int, int]:
    """Return the differences between objects and a target: architecture, float ABI, additional extensions."""
    architecture = 0
    if abi.arch and target.arch and abi.machine == "riscv":
        architecture = len(isa_extensions(target.arch) - isa_extensions(abi.arch))
    elif abi.arch and target.arch:
        architecture = int(abi.arch != target.arch)
    float_abi = int(abi.float_abi not in (None, "any", target.float_abi))
    extras = 0
    if abi.machine == "arm":
        extras += _FPU.index(target.fpu or "none") - _FPU.index(abi.fpu or "none")
        extras += _MVE.index(target.mve or "none") - _MVE.index(abi.mve or "none")
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
