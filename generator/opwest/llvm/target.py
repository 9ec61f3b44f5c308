# SPDX-License-Identifier: Apache-2.0
"""The targets of LLVM's code generation."""

from __future__ import annotations

from opwest.records import dataclass


@dataclass(frozen=True, slots=True)
class LlvmTarget:
    """The target of code generation."""

    name: str
    triple: str
    """Four parts: with three, LLVM ignores the environment and generates soft float."""
    cpu: str
    features: str
    """In LLVM's syntax: `+soft-float,-fpregs`; may be empty."""
    float_abi: str | None
    """The float ABI of the target's objects: soft, softfp, hard; soft, single, double; None elsewhere."""
    machine: str
    bits: int
    abi: str = ""
    """RISC-V: `ilp32`, `lp64d`, …; empty: from `bits` and `float_abi`."""
    data_layout: str = ""
    """LLVM's data layout for the target; empty if unknown."""
