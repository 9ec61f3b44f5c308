# SPDX-License-Identifier: Apache-2.0
"""The compilers of objects: names of rustc, the origin of functions, options that change the ABI.

A staticlib of Rust contains the objects of every crate that the user's crate depends on, the standard library included.
Sources: rustc-dev-guide, "Symbol mangling"; the Rust Reference, "Linkage"; RFC 2603 (v0 mangling).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from typing import Final, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.dwarf_signatures import producers
from opwest.objects.facts import CSource, Member

# v0: `_RNvCs…`. Legacy: that of C++, with a hash of 64 bits as the last part.
_MANGLED = re.compile(r"_R(?:\d+)?[A-Z]|_ZN.*17h[0-9a-f]{16}E")
# `core-120cbae4e86ec454.core.c1f1a4ba060b9bfa-cgu.0.rcgu.o`; C of compiler_builtins: `45c91108d938afe8-muldi3.o`.
_FROM_CRATE = re.compile(r"(?P<crate>\w+)-[0-9a-f]{16}\.|[0-9a-f]{16}-\w+\.o$")
STANDARD_LIBRARY: Final = frozenset(
    """addr2line adler adler2 alloc cfg_if compiler_builtins core gimli hashbrown libc memchr miniz_oxide object
    panic_abort panic_unwind proc_macro rustc_demangle rustc_std_workspace_alloc rustc_std_workspace_core
    rustc_std_workspace_std std std_detect test unwind""".split()
)
"""The crates of Rust's standard library, from 1.63 to 1.95."""


_WITHOUT_SYSTEM = frozenset("alloc compiler_builtins core rustc_std_workspace_alloc rustc_std_workspace_core".split())
RUNTIME_FUNCTIONS: Final = frozenset("rust_begin_unwind rust_eh_personality rust_panic".split())
"""Unmangled functions of the standard library, and of crates that replace parts of it (`#[panic_handler]`)."""
PERSONALITY_HINT: Final = (
    'compile with optimisation, or define it: #[no_mangle] pub extern "C" fn rust_eh_personality() {}'
)
HOSTED: Final = "part of Rust's standard library, which needs an operating system"
HOSTED_HINT: Final = "compile the crate with #![no_std], a #[panic_handler] and -C panic=abort"


def is_rust_symbol(symbol: str) -> bool:
    """Return whether a symbol is the mangled name of a Rust function or variable."""
    return _MANGLED.match(symbol) is not None


def is_standard(member: Member) -> bool:
    """Return whether a member of an archive belongs to Rust's standard library."""
    return _crate(member) is not None


def is_hosted(member: Member) -> bool:
    """Return whether a member belongs to the part of Rust's standard library that needs an operating system."""
    return _crate(member) not in {None, *_WITHOUT_SYSTEM}


def _crate(member: Member) -> str | None:
    """Return the crate of the standard library that a member of an archive is from; None for other members."""
    match = None if member.loose else _FROM_CRATE.match(member.name)
    if match is None:
        return None
    crate = str(match["crate"] or "compiler_builtins")
    return crate if crate in STANDARD_LIBRARY else None


Tool = Literal["Halide", "MLIR", "TVM", "IREE", "CasADi", "Faust"]
ForeignConvention = Literal["halide", "memref", "packed", "ffi", "pointer-tables"]

MLIR_PREFIX: Final = "_mlir_ciface_"
FFI_PREFIX: Final = "__tvm_ffi_"
_HALIDE_SUFFIXES: Final = ("_argv", "_metadata")
_TVM_CHECKS: Final = frozenset(("TVMAPISetLastError", "__TVMAPISetLastError", "__tvm_module_ctx"))
"""Only functions with argument arrays refer to these: they check the arrays."""
CASADI_SPARSITY: Final = "_sparsity_in"
_CASADI_SUFFIXES: Final = tuple(
    f"_{part}"
    for part in """alloc_mem casadi_int_size casadi_real_size casadi_version checkout decref default_in free_mem incref
    init_mem n_in n_out name_in name_out release sparsity_in sparsity_out work work_bytes""".split()
)
FAUST_COMPUTE: Final = "compute"
_FAUST_PARTS: Final = """new delete metadata getSampleRate getNumInputs getNumOutputs classInit instanceInit init
    instanceResetUserInterface instanceClear instanceConstants buildUserInterface""".split()
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


def origins_of(item: Member | CSource) -> Origins:
    """Return the origins of the functions that an object or a source defines."""
    if isinstance(item, CSource):
        return Origins({function.name for function in item.c_functions}, item.calls)
    return Origins(item.defined, item.undefined)


class Origins:
    """The origins of the functions of an object, from the symbols that it defines and refers to."""

    def __init__(self, defined: Collection[str], undefined: Collection[str]) -> None:
        self._defined = defined
        self._undefined = undefined

    def of(self, symbol: str) -> Origin | None:
        """Return the origin of a function; None if it is not recognized."""
        found = _halide(symbol, self._defined) or _mlir(symbol, self._defined) or self._iree(symbol)
        return found or self._tvm(symbol) or self._casadi(symbol) or _faust(symbol, self._defined)

    @cached_property
    def _casadi_functions(self) -> tuple[str, ...]:
        """The functions of CasADi, without those that describe them."""
        described = [name.removesuffix(CASADI_SPARSITY) for name in self._defined if name.endswith(CASADI_SPARSITY)]
        return tuple(sorted(name for name in described if f"{name}_work" in self._defined))

    def _casadi(self, symbol: str) -> Origin | None:
        """Return the origin of a function of CasADi, of what describes it, and of CasADi's helpers in the same file."""
        for name in self._casadi_functions:
            is_part = symbol in [name + suffix for suffix in _CASADI_SUFFIXES]
            if symbol == name or is_part:
                return Origin("CasADi", "pointer-tables", name, f"defines '{name}_work' and '{name}{CASADI_SPARSITY}'")
        if not self._casadi_functions:
            return None
        version = "_casadi_version"
        files = [name.removesuffix(version) for name in self._defined if name.endswith(version)]
        if symbol.startswith(("casadi_", *(f"{name}_" for name in (*files, *self._casadi_functions)))):
            return Origin("CasADi", "pointer-tables", self._casadi_functions[0], "contains CasADi's functions")
        return None

    @cached_property
    def _iree_call(self) -> str | None:
        """The first function of IREE's runtime that the object refers to."""
        return min((name for name in self._undefined if name.startswith(_IREE_PREFIX)), default=None)

    @cached_property
    def _tvm_check(self) -> str | None:
        """The first symbol of TVM's checks of arguments."""
        return min((name for name in _TVM_CHECKS if name in self._defined or name in self._undefined), default=None)

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


def _faust(symbol: str, defined: Collection[str]) -> Origin | None:
    for part in (FAUST_COMPUTE, *_FAUST_PARTS):
        name = symbol.removeprefix(part)
        if name != symbol and {f"{FAUST_COMPUTE}{name}", f"instanceInit{name}", f"getNumInputs{name}"} <= {*defined}:
            evidence = f"defines 'instanceInit{name}' and 'getNumInputs{name}'"
            return Origin("Faust", "pointer-tables", f"{FAUST_COMPUTE}{name}", evidence)
    return None


_OPTIONS: Final = (
    (re.compile(r"-mabi=ms$"), "arguments are passed as in Windows"),
    (re.compile(r"-mregparm=[1-9]|-msseregparm$"), "arguments are passed in registers"),
    (re.compile(r"-mrtd$"), "the function removes its arguments from the stack"),
    (re.compile(r"-fcall-(?:saved|used)-"), "other registers are preserved by calls"),
)
"""Options of GCC and clang, with their effects."""
_RECORDED = re.compile(r"GNU .* -|.*\brustc version |.*\bzig\b", re.IGNORECASE)


def abi_effect(option: str) -> str | None:
    """Return how an option of the compiler changes the ABI of functions; None if it does not."""
    return next((effect for pattern, effect in _OPTIONS if pattern.match(option)), None)


@dataclass(frozen=True, slots=True)
class AbiOptions:
    """The options of the units of an object."""

    faults: tuple[tuple[str, str], ...] = ()
    """Options that change the ABI, with their effect."""
    unknown: str | None = None
    """The reason why the options are not known: no debug information, or a producer without options."""


def abi_options(member: Member) -> AbiOptions:
    """Return the options of an object that change its ABI."""
    if not any(s.kind == "function" for s in member.defined.values()):
        return AbiOptions()
    undetected = f"{'-mabi=ms or ' if member.abi.machine == 'x86-64' else ''}-fcall-saved-REG cannot be detected"
    units = producers(member)
    if isinstance(units, str):
        return AbiOptions(unknown=f"{units}; {undetected}")
    effects = {option: abi_effect(option) for producer in units for option in producer.split()}
    faults = sorted((option, effect) for option, effect in effects.items() if effect is not None)
    silent = next((p for p in units if not _RECORDED.match(p) and " -" not in p), None)
    if silent is None:
        return AbiOptions(tuple(faults))
    compiler = silent.partition("(")[0].strip() or "the compiler"
    return AbiOptions(tuple(faults), f"{compiler} records no options; {undetected}")
