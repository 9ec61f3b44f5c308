# SPDX-License-Identifier: Apache-2.0
"""What operators that TVM compiled refer to: what the runtime provides, what it can't, what is no state of theirs.

From include/tvm/runtime/c_backend_api.h and c_runtime_api.h (apache/tvm 0.8 to 0.18), include/tvm/ffi/c_api.h
(tvm-ffi), and src/target/llvm/codegen_cpu.cc and src/target/source/codegen_c_host.cc, which write the variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from opwest.objects.facts import CSource, Member

ALLOCATE: Final = "TVMBackendAllocWorkspace"
PROVIDED: Final = frozenset(
    (
        ALLOCATE,
        "TVMBackendFreeWorkspace",
        "TVMAPISetLastError",
        "TVMFFIErrorSetRaisedFromCStr",
        "TVMFFIErrorSetRaisedFromCStrParts",
    )
)
"""Defined by zephyr_module/src/tvm_backend.c."""

POINTERS: Final = frozenset(f"__{name}" for name in PROVIDED)
"""Weak variables of LLVM objects, by which a dynamic loader would tell them the functions. The runtime's are strong."""

CONTEXTS: Final = frozenset(("__tvm_module_ctx", "__tvm_ffi__library_ctx"))
"""Variables for a library's own handle, by which functions would be found by name. Nobody writes them here."""

_BY_NAME: Final = "it calls functions by name, which needs TVM's own runtime"
_THREADS: Final = "it runs on threads of TVM's own"
_DEVICES: Final = "it manages memory of devices itself"
_OBJECTS: Final = "it works with objects of TVM's runtime"
REFUSED: Final[dict[str, str]] = {
    "TVMFuncCall": _BY_NAME,
    "TVMFuncGetGlobal": _BY_NAME,
    "TVMBackendGetFuncFromEnv": _BY_NAME,
    "TVMFFIFunctionCall": _BY_NAME,
    "TVMFFIFunctionGetGlobal": _BY_NAME,
    "TVMFFIEnvModLookupFromImports": _BY_NAME,
    "TVMBackendParallelLaunch": _THREADS,
    "TVMBackendParallelBarrier": _THREADS,
    "TVMBackendRunOnce": "it sets itself up at its first call and keeps that",
    "TVMDeviceAllocDataSpace": _DEVICES,
    "TVMDeviceAllocDataSpaceWithScope": _DEVICES,
    "TVMDeviceFreeDataSpace": _DEVICES,
    "TVMDeviceCopyDataFromTo": _DEVICES,
    "TVMSetStream": _DEVICES,
    "TVMSynchronize": _DEVICES,
    "TVMArrayAlloc": _OBJECTS,
    "TVMArrayFree": _OBJECTS,
    "TVMCFuncSetReturn": _OBJECTS,
    "TVMFFIObjectDecRef": _OBJECTS,
    "TVMFFIObjectIncRef": _OBJECTS,
    "TVMFFIErrorMoveFromRaised": _OBJECTS,
    "TVMFFIErrorSetRaised": _OBJECTS,
}
"""Why an operator that needs the function can't run here."""


def tvm_functions(item: Member | CSource) -> set[str]:
    """Return the functions of TVM's runtime that an object or source refers to, by whichever way."""
    names: Iterable[str] = item.calls if isinstance(item, CSource) else (*item.undefined, *item.defined)
    known = PROVIDED | REFUSED.keys()
    return {plain for name in names if (plain := name.removeprefix("__")) in known and _refers(item, name)}


def _refers(item: Member | CSource, name: str) -> bool:
    """Whether a name is a reference: of what an object defines itself only the variables are."""
    return isinstance(item, CSource) or name not in item.defined or name.startswith("__")


def own_state(item: Member | CSource) -> tuple[list[str], int]:
    """Return the writable variables that are an object's own, and their bytes (0 for sources)."""
    ignored = POINTERS | CONTEXTS | {f"__{name}" for name in REFUSED}
    if isinstance(item, CSource):
        return [name for name in item.state if name not in ignored], 0
    names = [name for name in item.stateful_symbols if name not in ignored]
    foreign = sum(s.size for s in item.symbols if s.name in ignored and s.section in ("data", "bss", "common"))
    return names, item.writable_bytes - foreign
