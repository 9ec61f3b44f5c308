# SPDX-License-Identifier: Apache-2.0
"""The compilers that are recognized by the symbols of their objects."""

from __future__ import annotations

import pytest
from opwest.objects.origins import Origin, Origins

HALIDE = {"scale", "scale_argv", "scale_metadata"}


@pytest.mark.parametrize(
    ("symbol", "defined", "undefined", "expected"),
    [
        ("scale", HALIDE, (), ("Halide", "halide", "scale")),
        ("scale_argv", HALIDE, (), ("Halide", "halide", "scale")),
        ("scale_metadata", HALIDE, (), ("Halide", "halide", "scale")),
        ("scale", {"scale"}, ("halide_malloc",), None),
        ("scale", {"scale", "scale_argv"}, (), None),
        ("relu", {"relu", "_mlir_ciface_relu"}, ("memcpy",), ("MLIR", "memref", "_mlir_ciface_relu")),
        ("_mlir_ciface_relu", {"relu", "_mlir_ciface_relu"}, (), ("MLIR", "memref", "_mlir_ciface_relu")),
        ("relu", {"relu"}, ("memcpy",), None),
        ("mul_library_query", {"mul_library_query"}, (), ("IREE", None, "mul_library_query")),
        ("mul_create", {"mul_create"}, ("iree_vm_module_initialize",), ("IREE", None, "mul_create")),
        ("__tvm_ffi_main", {"__tvm_ffi_main"}, (), ("TVM", "ffi", "__tvm_ffi_main")),
        ("add", {"add"}, ("TVMAPISetLastError",), ("TVM", "packed", "add")),
        ("add", {"add", "__tvm_module_ctx"}, (), ("TVM", "packed", "add")),
        ("add", {"add"}, ("TVMBackendAllocWorkspace",), None),
    ],
)
def test_origin(
    symbol: str, defined: set[str], undefined: tuple[str, ...], expected: tuple[str, str | None, str] | None
) -> None:
    """An origin follows from the symbols of the object; unknown functions have none."""
    found = Origins(defined, undefined).of(symbol)
    assert (found and (found.tool, found.convention, found.symbol)) == expected


def test_evidence() -> None:
    """An origin names what the object contains."""
    found = Origins(HALIDE, ()).of("scale")
    assert found == Origin("Halide", "halide", "scale", "defines 'scale_argv' and 'scale_metadata'")
