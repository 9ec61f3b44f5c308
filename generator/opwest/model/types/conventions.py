# SPDX-License-Identifier: Apache-2.0
"""The calling conventions of operators: one object for each, with all its properties.

unpacked: plain parameters, as the manifest lists them.
packed: TVMBackendPackedCFunc of TVM's C runtime (include/tvm/runtime/c_backend_api.h, 0.8 to 0.18).
ffi: TVMFFISafeCallType of tvm-ffi (include/tvm/ffi/c_api.h, TVM 0.21 and later).
The types are those of TVM's C output, which declares the arrays as `void *`.
halide: a pipeline that Halide compiled ahead of time, `int f(struct halide_buffer_t *, ...)` (HalideRuntime.h: "the raw
representation of an image passed around by generated Halide code").
memref: MLIR's C interface (mlir.llvm.org/docs/TargetLLVMIR, "C-compatible wrapper emission": `_mlir_ciface_f` with "all
memref arguments ... pointer-to-struct"). Both pass a tensor as a pointer to a structure that describes it, and scalars
by value. The structures are in `render/tables/layout.py`, their content in `render/tables/arrays.py`.
pointer-tables: plain parameters, and tables of pointers to tensors: `int f(const casadi_real **arg, casadi_real **res,
casadi_int *iw, casadi_real *w, int mem)` of CasADi (docs, "Using the generated code"), `compute` of Faust's C back end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.dtypes import Dlpack, DType

Result = Literal["status", "void", "value"]
"""What a function returns: int32_t, 0 on success; nothing; the result of a computation."""
EntryKind = Literal["tensor", "pointer", "integer", "boolean", "float"]

_DL_TENSOR_BYTES: Final = 48
"""On 64-bit targets; on others structures are no larger."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """How arguments are passed in arrays: a value for each argument and a DLTensor for each tensor."""

    parameters: tuple[tuple[str, str], ...]
    """Name and C type of every parameter of an entry point."""
    type_codes: Mapping[EntryKind, tuple[int, str]]
    """The code of each kind of value: number, and name in `header`."""
    header: str
    """The header of the runtime that declares the arrays."""
    value_type: str
    """The C type of a value."""
    pointer: str
    """The member of a value that holds a pointer."""
    has_code_array: bool
    """Whether the codes of the values are an array, and the result has a code; otherwise a value contains its code."""
    value_bytes: int
    extra_bytes: int
    """Bytes of the arrays besides tensors, values and the result."""
    has_strides: bool
    """Whether DLTensors have strides; without strides they are dense in C order."""
    is_old_tvm: bool
    """Whether DLDataTypes are those of TVM up to 0.18."""

    def bytes(self, tensors: int, values: int) -> int:
        """Return the bytes of the argument arrays of one call: the maximum over all targets."""
        return tensors * _DL_TENSOR_BYTES + (values + 1) * self.value_bytes + self.extra_bytes

    def dlpack(self, dtype: DType) -> Dlpack | None:
        """Return the DLDataType of tensors of an element type; None if there is none."""
        return dtype.dlpack_of_packed if self.is_old_tvm else dtype.dlpack


@dataclass(frozen=True, slots=True, eq=False)
class Descriptors:
    """How a tensor is passed as a pointer to a structure that describes it."""

    header: str
    """The header of the runtime that defines the structures."""
    c_type: str
    """The C type of the parameter."""
    content: Literal["halide_buffer", "memref"]
    """The function of `render/tables/arrays.py` that fills the structure."""
    data: tuple[str, ...]
    """The members that hold the address of the data."""
    forward: str | None = None
    """A declaration that the C type needs."""
    status: str | None = None
    """The function of the runtime that converts the result of the compiled function to a status."""
    describes: Callable[[DType], bool] = lambda _: True
    """Whether the structure can describe elements of a type."""


@dataclass(frozen=True, slots=True, eq=False)
class Convention:
    """A calling convention."""

    name: str
    """That of the manifest."""
    tensor_alignment: int
    """Alignment of data in bytes if the manifest does not declare it.

    TVM's LLVM code assumes kAllocAlignment: 64 on hosts (include/tvm/runtime/device_api.h). microTVM's allocator used
    16 (TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES), and its targets have no instruction that requires more.
    """
    workspace_alignment: int
    """Bytes that allocations are aligned to: kTempAllocaAlignment, see above."""
    arrays: Arrays | None
    """None: an entry point has the parameters that the manifest declares, and its device."""
    feature: str | None = None
    """The feature of the runtime (`zephyr/runtime.py`) whose files the bridges need."""
    is_of_system_library: bool = False
    """Whether TVM's system library lists entry points without an adapter."""
    descriptors: Descriptors | None = None
    """None: a tensor is passed as a pointer to its data, or in arrays."""
    has_tables: bool = False
    """Whether tensors can be entries of tables of pointers: the key `table` of arguments."""
    results: tuple[Result, ...] = ("status",)
    """What entry points can return; the first one if the manifest does not declare it."""

    @property
    def is_plain(self) -> bool:
        """Whether tensors are passed as pointers to their data, and scalars by value."""
        return self.arrays is None and self.descriptors is None

    def passes_scalar(self, dtype: DType) -> bool:
        """Return whether a scalar of an element type can be passed.

        Arrays hold all floats as double. Halide and MLIR pass floats of 16 bits as the processor does.
        """
        return self.is_plain or not dtype.bits

    def passes_tensor(self, dtype: DType) -> bool:
        """Return whether a tensor of an element type can be passed: its type may have no description."""
        if self.arrays is not None:
            return self.arrays.dlpack(dtype) is not None
        return self.descriptors is None or self.descriptors.describes(dtype)


UNPACKED: Final = Convention(
    "unpacked", tensor_alignment=1, workspace_alignment=16, arrays=None, results=("status", "void", "value")
)

PACKED_ARRAYS: Final = Arrays(
    parameters=(
        ("args", "void *"),
        ("type_codes", "int32_t *"),
        ("num_args", "int32_t"),
        ("ret_value", "void *"),
        ("ret_type_code", "int32_t *"),
        ("resource_handle", "void *"),
    ),
    type_codes={  # TVMArgTypeCode, see opwest/tvm_packed.h
        "tensor": (7, "kTVMDLTensorHandle"),
        "pointer": (3, "kTVMOpaqueHandle"),
        "integer": (0, "kTVMArgInt"),
        "boolean": (0, "kTVMArgInt"),
        "float": (2, "kTVMArgFloat"),
    },
    header="opwest/tvm_packed.h",
    value_type="TVMValue",
    pointer="v_handle",
    has_code_array=True,
    value_bytes=8,
    extra_bytes=8,  # the type code of the result
    has_strides=False,  # microTVM never set them
    is_old_tvm=True,
)
PACKED: Final = Convention(
    "packed",
    tensor_alignment=16,
    workspace_alignment=16,
    arrays=PACKED_ARRAYS,
    feature="tvm",
    is_of_system_library=True,
)

FFI: Final = Convention(
    "ffi",
    feature="tvm",
    tensor_alignment=64,
    workspace_alignment=64,
    arrays=Arrays(
        parameters=(
            ("handle", "void *"),
            ("args", "void *"),
            ("num_args", "int32_t"),
            ("result", "void *"),
        ),
        type_codes={  # TVMFFITypeIndex, see opwest/tvm_ffi.h
            "tensor": (7, "kTVMFFIDLTensorPtr"),
            "pointer": (4, "kTVMFFIOpaquePtr"),
            "integer": (1, "kTVMFFIInt"),
            "boolean": (2, "kTVMFFIBool"),
            "float": (3, "kTVMFFIFloat"),
        },
        header="opwest/tvm_ffi.h",
        value_type="TVMFFIAny",
        pointer="v_ptr",
        has_code_array=False,
        value_bytes=16,
        extra_bytes=0,
        has_strides=True,  # required since DLPack 1.2
        is_old_tvm=False,
    ),
)

HALIDE: Final = Convention(
    "halide",
    feature="halide",
    tensor_alignment=1,  # Halide assumes the alignment of the element, without set_host_alignment()
    workspace_alignment=64,  # halide_malloc: "the maximum meaningful alignment for ... vector loads and stores"
    arrays=None,
    descriptors=Descriptors(
        "opwest/halide_buffer.h",
        "struct halide_buffer_t *",
        "halide_buffer",
        ("host",),
        forward="struct halide_buffer_t",
        status="opwest_halide_code",
        describes=lambda dtype: dtype.halide is not None,
    ),
)
MEMREF: Final = Convention(
    "memref",
    feature="memref",
    tensor_alignment=1,
    workspace_alignment=16,
    arrays=None,
    descriptors=Descriptors("opwest/memref.h", "void *", "memref", ("allocated", "aligned")),
    results=("void", "status", "value"),
)
POINTER_TABLES: Final = Convention(
    "pointer-tables",
    tensor_alignment=1,
    workspace_alignment=16,
    arrays=None,
    has_tables=True,
    results=("status", "void", "value"),
)


CONVENTIONS: Final = (UNPACKED, POINTER_TABLES, PACKED, FFI, HALIDE, MEMREF)


def convention_of(name: str) -> Convention:
    """Return the calling convention of a name of the schema."""
    return next(convention for convention in CONVENTIONS if convention.name == name)


@dataclass(frozen=True, slots=True)
class WorkspaceNeed:
    """The memory of TVMBackendAllocWorkspace during a call: `size` and `align` in bytes."""

    size: int
    align: int

    @property
    def rounded(self) -> int:
        """The bytes for allocations, a multiple of the alignment."""
        return -(-self.size // self.align) * self.align

    @property
    def planned(self) -> int:
        """The bytes including two bitmaps of the runtime with a bit per unit (tvm_backend.c)."""
        return self.rounded + 2 * -(-(self.rounded // self.align) // 8)
