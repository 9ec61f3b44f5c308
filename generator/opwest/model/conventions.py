# SPDX-License-Identifier: Apache-2.0
"""The calling conventions of operators: what a compiled function of each takes.

packed: TVMBackendPackedCFunc of TVM's C runtime (include/tvm/runtime/c_backend_api.h, 0.8 to 0.18).
ffi: TVMFFISafeCallType of tvm-ffi (include/tvm/ffi/c_api.h, TVM 0.21 and later).
The types are those of TVM's own C output, which has `void *` for the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

ConventionName = Literal["unpacked", "packed", "ffi"]

PARAMETERS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "packed": (
        ("args", "void *"),
        ("type_codes", "int32_t *"),
        ("num_args", "int32_t"),
        ("ret_value", "void *"),
        ("ret_type_code", "int32_t *"),
        ("resource_handle", "void *"),
    ),
    "ffi": (
        ("self", "void *"),
        ("args", "void *"),
        ("num_args", "int32_t"),
        ("result", "void *"),
    ),
}
"""Name and C type of every parameter of an entry point; unpacked ones follow the manifest."""

TENSOR_ALIGNMENT: Final[dict[str, int]] = {"unpacked": 1, "packed": 16, "ffi": 64}
"""Bytes that data must be aligned to where the manifest does not say.

TVM's LLVM code assumes kAllocAlignment: 64 on hosts (include/tvm/runtime/device_api.h). microTVM's allocator gave 16
(TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES), and its targets have no instruction that needs more.
"""

WORKSPACE_ALIGNMENT: Final[dict[str, int]] = {"unpacked": 16, "packed": 16, "ffi": 64}
"""Bytes that allocations are aligned to: kTempAllocaAlignment, see above."""

DL_TENSOR_BYTES: Final = 48
PACKED_VALUE_BYTES: Final = 8
FFI_VALUE_BYTES: Final = 16
"""Sizes on 64-bit targets; on others structures are no larger."""


@dataclass(frozen=True, slots=True)
class WorkspaceNeed:
    """What TVMBackendAllocWorkspace may hand out during a call: `size` and `align` in bytes."""

    size: int
    align: int

    @property
    def rounded(self) -> int:
        """The bytes for allocations: whole units of the alignment."""
        return -(-self.size // self.align) * self.align

    @property
    def planned(self) -> int:
        """The bytes with the runtime's bookkeeping: two rows of a bit for each unit (tvm_backend.c)."""
        return self.rounded + 2 * -(-(self.rounded // self.align) // 8)


def arrays_bytes(convention: str, tensors: int, values: int) -> int:
    """Return how much memory the argument arrays of one call take, bytes; enough for every target."""
    if convention == "packed":  # tensors, values, the result and its type code
        return tensors * DL_TENSOR_BYTES + (values + 1) * PACKED_VALUE_BYTES + 8
    return tensors * DL_TENSOR_BYTES + (values + 1) * FFI_VALUE_BYTES
