# SPDX-License-Identifier: Apache-2.0
"""The targets of LLVM's code generation."""

from __future__ import annotations

from opwest.records import dataclass


@dataclass(frozen=True, slots=True)
class LlvmTarget:
    """The target of code generation."""

    name: str
    triple: str
    """Four parts: with three, LLVM takes the environment for something else and generates soft float."""
    cpu: str
    features: str
    """As LLVM takes them: `+soft-float,-fpregs`; may be empty."""
    float_abi: str | None
    """The float ABI of the target's objects: soft, softfp, hard; soft, single, double; None elsewhere."""
    machine: str
    bits: int
    abi: str = ""
    """RISC-V: `ilp32`, `lp64d`, …; empty: from `bits` and `float_abi`."""
    data_layout: str = ""
    """The one LLVM has for the target; empty: not known here."""
