# SPDX-License-Identifier: Apache-2.0
"""Symbols that operators compiled by TVM refer to: provided, unsupported, and variables that are not state.

From include/tvm/runtime/c_backend_api.h and c_runtime_api.h (apache/tvm 0.8 to 0.18), include/tvm/ffi/c_api.h
(tvm-ffi), and src/target/llvm/codegen_cpu.cc and src/target/source/codegen_c_host.cc, which write the variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from opwest.objects.facts import CSource, Member

GENERATED: Final = "tvmgen_"
"""The prefix of generated functions (src/relay/backend/name_transforms.h). TVM writes no `const`."""

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
"""Weak function pointers in LLVM objects, set by a dynamic loader. The runtime's definitions are strong."""

CONTEXTS: Final = frozenset(("__tvm_module_ctx", "__tvm_ffi__library_ctx"))
"""Variables for a library handle, used to look up functions by name. They are never written here."""

_BY_NAME: Final = "calls functions by name, which requires TVM's runtime"
_THREADS: Final = "uses TVM's threads"
_DEVICES: Final = "manages device memory"
_OBJECTS: Final = "uses objects of TVM's runtime"
REFUSED: Final[dict[str, str]] = {
    "TVMFuncCall": _BY_NAME,
    "TVMFuncGetGlobal": _BY_NAME,
    "TVMBackendGetFuncFromEnv": _BY_NAME,
    "TVMFFIFunctionCall": _BY_NAME,
    "TVMFFIFunctionGetGlobal": _BY_NAME,
    "TVMFFIEnvModLookupFromImports": _BY_NAME,
    "TVMBackendParallelLaunch": _THREADS,
    "TVMBackendParallelBarrier": _THREADS,
    "TVMBackendRunOnce": "initializes state at its first call",
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
"""By function, why an operator that refers to it is not supported."""


def tvm_functions(item: Member | CSource) -> set[str]:
    """Return the functions of TVM's runtime that an object or source refers to, directly or by pointer."""
    names: Iterable[str]
    if isinstance(item, CSource):
        names = item.calls
    else:  # of an object's definitions, only the pointer variables are references
        names = (*item.undefined, *(name for name in item.defined if name.startswith("__")))
    known = PROVIDED | REFUSED.keys()
    return {plain for name in names if (plain := name.removeprefix("__")) in known}
