# SPDX-License-Identifier: Apache-2.0
"""Symbols that pipelines compiled by Halide refer to: provided and unsupported, from HalideRuntime.h (Halide 21)."""

from __future__ import annotations

from typing import Final

ALLOCATE: Final = "halide_malloc"
_ERRORS: Final = """
    bounds_inference_call_failed extern_stage_failed explicit_bounds_too_small bad_type bad_dimensions
    access_out_of_bounds buffer_allocation_too_large buffer_extents_negative buffer_extents_too_large
    constraints_make_required_region_smaller constraint_violated param_too_small_i64 param_too_small_u64
    param_too_small_f64 param_too_large_i64 param_too_large_u64 param_too_large_f64 out_of_memory
    buffer_argument_is_null debug_to_file_failed unaligned_host_ptr host_is_null bad_fold bad_extern_fold
    fold_factor_too_small requirement_failed specialize_fail no_device_interface device_interface_no_device
    host_and_device_dirty buffer_is_null device_dirty_with_no_device_support storage_bound_too_small
    device_crop_failed split_factor_not_positive vscale_invalid
""".split()
PROVIDED: Final = frozenset((ALLOCATE, "halide_free", "halide_error", *(f"halide_error_{name}" for name in _ERRORS)))
"""Defined by zephyr_module/src/halide_backend.c."""

_PREFIX: Final = "halide_"
_THREADS: Final = ("uses Halide's threads", "schedule the pipeline without parallel() and async()")
_DEVICES: Final = ("manages the memory of a GPU", "compile for the processor alone")
_DEBUGGING: Final = ("writes output for debugging", "compile without tracing, profiling, print() and debug_to_file()")
_OTHERS: Final = ("uses Halide's runtime", "opwest provides halide_malloc, halide_free and halide_error_*")
_REFUSED: Final = (
    (("do_", "semaphore", "mutex", "cond_", "spawn", "join", "get_num", "set_num"), _THREADS),
    (("device", "copy_to", "buffer_", "cuda", "opencl", "metal", "vulkan", "webgpu", "d3d12"), _DEVICES),
    (("trace", "print", "debug", "profiler", "string_to", "int64_to", "uint64_to", "double_to"), _DEBUGGING),
)


def refusal_of(symbol: str) -> tuple[str, str] | None:
    """Return why a function of Halide's runtime is not provided, and what to do; None for other symbols."""
    if not symbol.startswith(_PREFIX) or symbol in PROVIDED:
        return None
    name = symbol.removeprefix(_PREFIX)
    return next((reason for begins, reason in _REFUSED if name.startswith(begins)), _OTHERS)
