# SPDX-License-Identifier: Apache-2.0
"""Compilers that are recognized by the symbols of their objects, and the calling conventions of their functions.

Halide: for a pipeline NAME the compiler also defines NAME_argv and NAME_metadata (src/CodeGen_LLVM.cpp). A
function that only calls `halide_*` can be a wrapper written by hand.
MLIR: for a function NAME with the attribute `llvm.emit_c_interface`, -convert-func-to-llvm also defines
_mlir_ciface_NAME (mlir.llvm.org/docs/TargetLLVMIR, "C-compatible wrapper emission").
TVM: see `tvm_symbols.py`.
IREE: a static library exports NAME_library_query (iree/hal/local/executable_library.h), and code for the C back end
calls functions `iree_*`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Final, Literal

from opwest.objects.facts import CSource, Member
from opwest.records import dataclass

Tool = Literal["Halide", "MLIR", "TVM", "IREE"]
ForeignConvention = Literal["halide", "memref", "packed", "ffi"]

MLIR_PREFIX: Final = "_mlir_ciface_"
FFI_PREFIX: Final = "__tvm_ffi_"
_HALIDE_SUFFIXES: Final = ("_argv", "_metadata")
_TVM_CHECKS: Final = frozenset(("TVMAPISetLastError", "__TVMAPISetLastError", "__tvm_module_ctx"))
"""Only functions with argument arrays refer to these: they check the arrays."""
_IREE_QUERY: Final = "_library_query"
_IREE_PREFIX: Final = "iree_"


@dataclass(frozen=True, slots=True)
class Origin:
    """The compiler of a function, and how the function is called."""

    tool: Tool
    convention: ForeignConvention | None
    """None: only the compiler's own runtime can call it."""
    symbol: str
    """The function to declare as the operator's `symbol`."""
    evidence: str
    """What the object contains, after "it": `defines 'scale_argv' and 'scale_metadata'`."""


def origin_of(symbol: str, item: Member | CSource) -> Origin | None:
    """Return the origin of a function that an object or a source defines; None if it is not recognized."""
    if isinstance(item, CSource):
        return Origins({function.name for function in item.c_functions}, item.calls).of(symbol)
    return Origins(item.defined, item.undefined).of(symbol)


class Origins:
    """The origins of the functions of an object, from the symbols that it defines and refers to."""

    def __init__(self, defined: Collection[str], undefined: Collection[str]) -> None:
        self._defined = defined
        self._undefined = undefined

    def of(self, symbol: str) -> Origin | None:
        """Return the origin of a function; None if it is not recognized."""
        return _halide(symbol, self._defined) or _mlir(symbol, self._defined) or self._iree(symbol) or self._tvm(symbol)

    @cached_property
    def _iree_call(self) -> str | None:
        """The first function of IREE's runtime that the object refers to."""
        return min((name for name in self._undefined if name.startswith(_IREE_PREFIX)), default=None)

    @cached_property
    def _tvm_check(self) -> str | None:
        """The first symbol of TVM's checks of arguments."""
        return min((one for one in _TVM_CHECKS if one in self._defined or one in self._undefined), default=None)

    def _iree(self, symbol: str) -> Origin | None:
        if symbol.endswith(_IREE_QUERY):
            return Origin("IREE", None, symbol, f"defines {symbol!r}")
        called = self._iree_call
        return Origin("IREE", None, symbol, f"refers to {called!r}") if called else None

    def _tvm(self, symbol: str) -> Origin | None:
        if symbol.startswith(FFI_PREFIX):
            return Origin("TVM", "ffi", symbol, f"defines {symbol!r}")
        check = self._tvm_check
        return Origin("TVM", "packed", symbol, f"refers to {check!r}") if check else None


def _halide(symbol: str, defined: Collection[str]) -> Origin | None:
    for name in (symbol, *(symbol.removesuffix(end) for end in _HALIDE_SUFFIXES if symbol.endswith(end))):
        companions = [name + end for end in _HALIDE_SUFFIXES]
        if name in defined and all(companion in defined for companion in companions):
            return Origin("Halide", "halide", name, f"defines {companions[0]!r} and {companions[1]!r}")
    return None


def _mlir(symbol: str, defined: Collection[str]) -> Origin | None:
    wrapper = MLIR_PREFIX + symbol.removeprefix(MLIR_PREFIX)
    return Origin("MLIR", "memref", wrapper, f"defines {wrapper!r}") if wrapper in defined else None
