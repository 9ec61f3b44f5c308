# SPDX-License-Identifier: Apache-2.0
"""The layouts, codes and flags of the runtime's headers that generated code uses: their only description.

tests/llvm/test_layout.py compiles the headers for every target and compares them with this module.
"""

from __future__ import annotations

from opwest.model.types.dtypes import DLPACK_CODES, DTYPES
from opwest.render.tables.types import (
    Constant,
    Enumeration,
    Flags,
    Function,
    Index,
    Nested,
    Pointer,
    Scalar,
    Size,
    String,
    Struct,
    Union,
)

METADATA_VERSION = 8
"""OPWEST_METADATA_VERSION of the runtime that generated code is made for."""

DTYPE = Enumeration(
    "enum opwest_dtype", "OPWEST_", tuple(d.name for d in sorted(DTYPES.values(), key=lambda dtype: dtype.number))
)
DIRECTION = Enumeration("enum opwest_direction", "OPWEST_", ("in", "out", "inout", "scratch"))
_HOOKS = "operator ready activate open close deactivate sync cache input output pool device check load cancel"
HOOK = Enumeration("enum opwest_hook", "OPWEST_HOOK_", tuple(_HOOKS.split()))
POINT_KIND = Enumeration("enum opwest_point_kind", "OPWEST_POINT_", ("run", "step", "launch", "wait", "cache", "copy"))
VALUE_KIND = Enumeration("enum opwest_value_kind", "OPWEST_VALUE_", ("in", "out", "integer", "real"))
FLOAT_ABI = Enumeration(
    "enum opwest_float_abi", "OPWEST_FLOAT_ABI_", ("only", "soft", "hard", "single", "double", "quad")
)
BUFFER_ROLE = Enumeration(
    "enum opwest_buffer_role", "OPWEST_BUFFER_", ("intermediate", "scratch", "input", "output", "constant", "state")
)
BINDING_KIND = Enumeration(
    "enum opwest_binding_kind", "OPWEST_BINDING_", ("input", "output", "constant", "buffer", "scalar", "view")
)
HALIDE_TYPE_CODE = Enumeration(
    "enum opwest_halide_type", "OPWEST_HALIDE_", ("int", "uint", "float", "handle", "bfloat")
)
DLPACK_CODE = Enumeration("DLDataTypeCode", None, DLPACK_CODES)

TENSOR_FLAGS = Flags("OPWEST_TENSOR_", ("scalar", "in_place"), "OPWEST_TENSOR_ALIGNED", shift=4)
OPERATOR_FLAGS = Flags(
    "OPWEST_OPERATOR_",
    ("status", "device", "stateful", "async", "launch", "heap", "io", "nondeterminism", "control", "fenv"),
)
MODEL_FLAGS = Flags("OPWEST_MODEL_", ("stateful",))
DEVICE_FLAGS = Flags("OPWEST_DEVICE_", ("hooks", "foreign", "coherent", "power_run"))
POOL_FLAGS = Flags("OPWEST_POOL_", ("cpu", "all_devices"))
SLOT_FLAGS = Flags("OPWEST_SLOT_", ("active", "by_name", "lost", "uncounted", "loads", "loaded"))

NO_STEP = Constant("OPWEST_NO_STEP", 0xFFFF)
NO_NEXT = Constant("OPWEST_STATE_NO_NEXT", 0xFFFF, "opwest/state.h")
NO_DEVICE = Constant("OPWEST_NO_DEVICE", 0xFFFF)
NO_ARGUMENT = Constant("OPWEST_NO_ARGUMENT", 0xFFFF)
STATUS_NO_DEVICE = Constant("OPWEST_STATUS_NO_DEVICE", 0xFF)
VERSION = Constant("OPWEST_METADATA_VERSION", METADATA_VERSION)
DL_CPU = Constant("kDLCPU", 1, "opwest/dlpack.h")
TVM_NULLPTR = Constant("kTVMNullptr", 4, "opwest/tvm_packed.h")

U8, U16, U32, U64 = (Scalar(DTYPES[f"uint{bits}"]) for bits in (8, 16, 32, 64))
I32, I64 = Scalar(DTYPES["int32"]), Scalar(DTYPES["int64"])
F32 = Scalar(DTYPES["float32"])
_STEP, _DEVICE = Scalar(U16.dtype, NO_STEP), Scalar(U16.dtype, NO_DEVICE)
_MODEL_H, _REGISTRY_H, _DEVICES_H = "opwest/model.h", "opwest/registry.h", "opwest/devices.h"
PROFILE_HEADER, _DLPACK_H, _STATE_H = "opwest/profile.h", "opwest/dlpack.h", "opwest/state.h"
_HALIDE_H, _MEMREF_H = "opwest/halide_buffer.h", "opwest/memref.h"

QUANTIZATION = Struct.make(
    "opwest_quantization",
    _MODEL_H,
    scales=Pointer(F32, count="scale_count"),
    zero_points=Pointer(I32, count="zero_point_count"),
    scale_count=U32,
    zero_point_count=U32,
    axis=I32,
)
TENSOR = Struct.make(
    "opwest_tensor",
    _MODEL_H,
    name=String(),
    shape=Pointer(U32, count="rank", is_unique=True),
    quantization=Pointer(QUANTIZATION, is_unique=True),
    size=U32,
    dtype=Scalar(U8.dtype, DTYPE),
    rank=U8,
    direction=Scalar(U8.dtype, DIRECTION),
    flags=Scalar(U8.dtype, TENSOR_FLAGS),
)
OPERATOR = Struct.make(
    "opwest_operator",
    _MODEL_H,
    name=String(),
    description=String(),
    args=Pointer(TENSOR, count="arg_count"),
    arg_count=U16,
    flags=Scalar(U16.dtype, OPERATOR_FLAGS),
)
STEP = Struct.make("opwest_step", _MODEL_H, operator_index=U16, device_index=_DEVICE)
POOL = Struct.make("opwest_pool", _MODEL_H, name=String(), size=U32, align=U32)
PROGRAM = Struct.make("opwest_program", "opwest/launch.h", name=String(), data=Pointer(U8, count="size"), size=U32)
DEVICE = Struct.make(
    "opwest_device",
    _MODEL_H,
    name=String(),
    type=String(),
    program=Pointer(PROGRAM, is_unique=True),
    timeout_ms=I32,
    own_timeout_ms=I32,
    first_step=_STEP,
    last_step=U16,
    queue_depth=U16,
    flags=Scalar(U16.dtype, DEVICE_FLAGS),
)
DEVICE_USE = Struct.make("opwest_device_use", _DEVICES_H, program=Pointer(PROGRAM, is_unique=True), device=U32)
FLAG = Struct.typedef("opwest_port_flag_t", "opwest/port.h")
"""A variable of the model: only its address is in a table."""
DEVICE_SET = Struct.make(
    "opwest_device_set",
    _DEVICES_H,
    model=String(),
    devices=Pointer(DEVICE, count="count"),
    uses=Pointer(DEVICE_USE, count="use_count"),
    in_use=Pointer(FLAG, is_const=False),
    count=U32,
    use_count=U32,
)
MODEL = Struct.make(
    "opwest_model",
    _MODEL_H,
    name=String(),
    inputs=Pointer(TENSOR, count="input_count"),
    outputs=Pointer(TENSOR, count="output_count"),
    operators=Pointer(OPERATOR, count="operator_count", is_unique=True),
    steps=Pointer(STEP, count="step_count"),
    pools=Pointer(POOL, count="pool_count"),
    devices=Pointer(DEVICE, count="device_count"),
    constant_size=U32,
    version=Scalar(U16.dtype, VERSION),
    input_count=U16,
    output_count=U16,
    operator_count=U16,
    step_count=U16,
    pool_count=U16,
    device_count=U16,
    flags=Scalar(U16.dtype, MODEL_FLAGS),
)
BUILD = Struct.make(
    "opwest_build",
    _MODEL_H,
    generator=String(),
    model_hash=String(),
    target=String(),
    machine=U16,
    float_abi=Scalar(U8.dtype, FLOAT_ABI),
    pointer_size=U8,
    big_endian=U8,
)
CONSTANT = Struct.make("opwest_constant", _MODEL_H, tensor=Nested(TENSOR), data=Pointer("void"))
BUFFER = Struct.make(
    "opwest_buffer",
    _MODEL_H,
    tensor=Nested(TENSOR),
    offset=U32,
    pool=U16,
    first_step=U16,
    last_step=U16,
    role=Scalar(U8.dtype, BUFFER_ROLE),
)
REGION = Struct.make("opwest_region", _MODEL_H, board=String(), node=String())
POOL_PLACE = Struct.make(
    "opwest_pool_place",
    _MODEL_H,
    regions=Pointer(REGION, count="region_count"),
    devices=Pointer(U16, count="device_count"),
    cache_line=U32,
    region_count=U16,
    device_count=U16,
    flags=Scalar(U32.dtype, POOL_FLAGS),
)
BINDING = Struct.make("opwest_binding", _MODEL_H, kind=Scalar(U16.dtype, BINDING_KIND), index=U16)
STEP_BINDINGS = Struct.make(
    "opwest_step_bindings", _MODEL_H, bindings=Pointer(BINDING, count="binding_count"), binding_count=U32
)
VIEW = Struct.make("opwest_view", _MODEL_H, tensor=Nested(TENSOR), base=Nested(BINDING), offset=U32)
STATE_TENSOR = Struct.make(
    "opwest_state_tensor",
    _STATE_H,
    initial=Pointer("void"),
    initial_size=U32,
    offset=U32,
    size=U32,
    pool=U16,
    buffer=U16,
    next=Nested(BINDING),
)
STATE = Struct.make(
    "opwest_state",
    _STATE_H,
    tensors=Pointer(STATE_TENSOR, count="count"),
    count=U32,
    size=U32,
    layout_low=U32,
    layout_high=U32,
)
DETAILS = Struct.make(
    "opwest_details",
    _MODEL_H,
    model=Pointer(MODEL),
    build=Pointer(BUILD),
    constants=Pointer(CONSTANT, count="constant_count"),
    buffers=Pointer(BUFFER, count="buffer_count"),
    pool_places=Pointer(POOL_PLACE, count="pool_count"),
    step_bindings=Pointer(STEP_BINDINGS, count="step_count"),
    views=Pointer(VIEW, count="view_count"),
    state=Pointer(STATE),
    scalars=Pointer(U64, count="scalar_count"),
    constant_count=U16,
    buffer_count=U16,
    pool_count=U16,
    step_count=U16,
    view_count=U16,
    reserved=U16,
    scalar_count=U32,
)
REQUIREMENT = Struct.make(
    "opwest_requirement",
    _REGISTRY_H,
    type=String(),
    program=String(),
    own_program=Pointer(PROGRAM, is_unique=True),
    call=Function("opwest_device_call_t"),
)
ENTRY = Struct.make(
    "opwest_entry",
    _REGISTRY_H,
    info=Pointer(OPERATOR, is_unique=True),
    adapter=Function("opwest_adapter_t"),
    requirement=Pointer(REQUIREMENT, is_unique=True),
)
REGISTRY = Struct.make(
    "opwest_registry",
    _REGISTRY_H,
    entries=Pointer(ENTRY, count="count"),
    displacements=Pointer(U16, count="bucket_count"),
    seed=U32,
    bucket_count=U32,
    count=U32,
)
POINT = Struct.make(
    "opwest_point",
    PROFILE_HEADER,
    name=String(),
    step=_STEP,
    device=_DEVICE,
    kind=Scalar(U32.dtype, POINT_KIND),
)
MEASURE = Struct.make(
    "opwest_measure", PROFILE_HEADER, total=U64, last=U64, min=U64, max=U64, begun=U64, runs=U32, reserved=U32
)
VALUE = Struct.make(
    "opwest_value",
    _REGISTRY_H,
    **{"as": Union(I64)},
    size=Size(),
    dtype=Scalar(U8.dtype, DTYPE),
    kind=Scalar(U8.dtype, VALUE_KIND),
)
STATUS = Struct.make(
    "opwest_status",
    "opwest/status.h",
    code=I32,
    step=_STEP,
    hook=Scalar(U8.dtype, HOOK),
    device=Scalar(U8.dtype, STATUS_NO_DEVICE),
    argument=Scalar(U16.dtype, NO_ARGUMENT),
)
LAUNCH = Struct.make(
    "opwest_launch",
    "opwest/launch.h",
    dev=Pointer("device"),
    program=Pointer(PROGRAM),
    timeout_ms=I32,
    step=_STEP,
    slot=U16,
)
SLOT = Struct.make(
    "opwest_slot",
    _DEVICES_H,
    dev=Pointer("device"),
    launch=Nested(LAUNCH),
    owner=Size(),
    unfinished=U32,
    count=U32,
    jobs=U32,
    launched=_STEP,
    acquired=_STEP,
    depth=U16,
    next=U16,
    turn=U8,
    leader=U8,
    flags=Scalar(U8.dtype, SLOT_FLAGS),
    cancelled=U8,
)
TVM_WORKSPACE = Struct.make(
    "opwest_tvm_workspace",
    "opwest/tvm_workspace.h",
    next=Pointer("opwest_tvm_workspace", is_const=False),
    thread=Pointer("void"),
    memory=Pointer(U8, is_const=False),
    units=U32,
    used=U32,
    shift=U32,
    exhausted=U32,
)
DL_DEVICE = Struct.typedef("DLDevice", _DLPACK_H, device_type=Scalar(I32.dtype, DL_CPU), device_id=I32)
DL_DATA_TYPE = Struct.typedef("DLDataType", _DLPACK_H, code=Scalar(U8.dtype, DLPACK_CODE), bits=U8, lanes=U16)
DL_TENSOR = Struct.typedef(
    "DLTensor",
    _DLPACK_H,
    data=Pointer("void", is_const=False),
    device=Nested(DL_DEVICE),
    ndim=I32,
    dtype=Nested(DL_DATA_TYPE),
    shape=Pointer(I64, count="ndim", is_const=False),
    strides=Pointer(I64, count="ndim", is_const=False),
    byte_offset=U64,
)
TVM_FFI_ANY = Struct.typedef("TVMFFIAny", "opwest/tvm_ffi.h", type_index=I32, zero_padding=U32, v_int64=Union(I64))
"""v_int64 is the widest member of an anonymous union."""

HALIDE_TYPE = Struct.make("halide_type_t", _HALIDE_H, code=Scalar(U8.dtype, HALIDE_TYPE_CODE), bits=U8, lanes=U16)
HALIDE_DIMENSION = Struct.make("halide_dimension_t", _HALIDE_H, min=I32, extent=I32, stride=I32, flags=U32)
HALIDE_BUFFER = Struct.make(
    "halide_buffer_t",
    _HALIDE_H,
    device=U64,
    device_interface=Pointer("halide_device_interface_t"),
    host=Pointer(U8, is_const=False),
    flags=U64,
    type=Nested(HALIDE_TYPE),
    dimensions=I32,
    dim=Pointer(HALIDE_DIMENSION, count="dimensions", is_const=False),
    padding=Pointer("void", is_const=False),
)


def _memref(rank: int) -> Struct:
    """Return the descriptor of a memref of MLIR."""
    data = Pointer("void", is_const=False)
    arrays = {"sizes": Index(rank), "strides": Index(rank)} if rank else {}
    return Struct.make(f"opwest_memref_{rank}", _MEMREF_H, allocated=data, aligned=data, offset=Index(), **arrays)


MEMREFS = tuple(map(_memref, range(17)))
"""The descriptors of all ranks that a manifest permits."""

ROWS = {
    QUANTIZATION.name: "OPWEST_QUANTIZATION",
    TENSOR.name: "OPWEST_TENSOR",
    OPERATOR.name: "OPWEST_OPERATOR",
    DEVICE.name: "OPWEST_DEVICE",
    CONSTANT.name: "OPWEST_CONSTANT",
    BUFFER.name: "OPWEST_BUFFER",
    VIEW.name: "OPWEST_VIEW",
    POOL_PLACE.name: "OPWEST_POOL_PLACE",
    POINT.name: "OPWEST_POINT",
}
"""The macros of the runtime's headers that initialise a structure: an argument for each member, also of nested ones."""

OPTIONAL = (BUILD, CONSTANT, BUFFER, REGION, POOL_PLACE, BINDING, STEP_BINDINGS, VIEW, DETAILS)
"""Structures of the parts of the metadata that only `<model>_details` refers to."""
METADATA = (
    *(QUANTIZATION, TENSOR, OPERATOR, STEP, POOL, PROGRAM, DEVICE, DEVICE_USE, DEVICE_SET, MODEL),
    *OPTIONAL,
    *(REQUIREMENT, ENTRY, REGISTRY, POINT, STATE_TENSOR, STATE),
)
"""Structures of constants."""
ARRAYS = (DL_DEVICE, DL_DATA_TYPE, DL_TENSOR, TVM_FFI_ANY)
"""Structures of argument arrays: see model/types/conventions.py."""
DESCRIPTORS = (HALIDE_TYPE, HALIDE_DIMENSION, HALIDE_BUFFER, *MEMREFS)
"""Structures that describe tensors."""
STRUCTS = (*METADATA, MEASURE, VALUE, STATUS, LAUNCH, SLOT, TVM_WORKSPACE, *ARRAYS, *DESCRIPTORS)
"""All structures of the runtime that generated code relies on."""
