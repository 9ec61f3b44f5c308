# SPDX-License-Identifier: Apache-2.0
"""TVM targets for opwest's named targets."""

from __future__ import annotations

from typing import Any

from opwest.diagnostics import nearest
from opwest.importers.tvm.faults import fault
from opwest.targets import named_targets


def tvm_target(name: str) -> Any:
    """Return TVM's LLVM target for a named target. Raises OpwestError."""
    import tvm

    table = named_targets()
    if name not in table or "llvm" not in table[name]:
        raise fault(f"unknown target {name!r}", None, "a name listed by 'opwest targets'", nearest(name, table))
    llvm = table[name]["llvm"]
    keys: dict[str, Any] = {"kind": "llvm", "mtriple": llvm["triple"], "mcpu": llvm["cpu"], "opt-level": 2}
    keys["vector-width"] = 128  # TVM's default; TVM warns if it is not set
    if llvm.get("features"):
        keys["mattr"] = llvm["features"].split(",")
    if llvm.get("abi"):
        keys["mabi"] = llvm["abi"]
    if table[name].get("machine") == "arm":
        keys["mfloat-abi"] = "hard" if llvm["triple"].endswith("hf") else "soft"
    return tvm.target.Target(keys)
