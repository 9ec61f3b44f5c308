# SPDX-License-Identifier: Apache-2.0
"""The judgement of one object or C source: its writable state, its hidden effects, and why it cannot be linked.

`opwest inspect` judges a file alone. `opwest check` judges it in the link of a manifest, which can permit state, define
symbols and require an ABI. Both print the reasons of `judge`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.objects import halide_symbols
from opwest.objects.compat import WORD_SIZES, TargetAbi, abi_faults
from opwest.objects.compilers import HOSTED, HOSTED_HINT, PERSONALITY_HINT, abi_options, is_hosted
from opwest.objects.dwarf_signatures import producers
from opwest.objects.elf import COMMON_MACHINES, machines
from opwest.objects.facts import CSource, Member, ObjectError
from opwest.objects.instructions import instruction_effects
from opwest.objects.library_symbols import EFFECT_EXPECTED, LIBCS, hidden_effects, provider_of
from opwest.objects.relocations import relocation_faults
from opwest.objects.tvm_symbols import ALLOCATE, CONTEXTS, POINTERS, PROVIDED, REFUSED, tvm_functions

Kind = Literal["file", "abi", "relocation", "undefined", "tvm", "halide", "workspace", "state", "effect"]
DEFAULT_LIBC = "picolibc"
_HOST_MACHINES = ("x86-64", "i386")
RUNTIME_SYMBOLS = (
    frozenset(
        """opwest_call opwest_call_check opwest_call_on_device opwest_dtype_name opwest_dtype_size opwest_find
    opwest_launch opwest_model_input opwest_model_output opwest_model_step_name opwest_own opwest_port_cache_line
    opwest_port_device_is_ready opwest_port_give opwest_port_log_failure opwest_port_take opwest_release
    opwest_status_already opwest_status_failed opwest_status_invalid opwest_status_unreached opwest_wait""".split()
    )
    | PROVIDED
    | halide_symbols.PROVIDED
)
"""The functions declared in zephyr_module/include."""
_IGNORED_STATE = POINTERS | CONTEXTS | {f"__{name}" for name in REFUSED}


@dataclass(frozen=True, slots=True)
class State:
    """The writable variables of an object, without those that a compiler adds and its code never writes."""

    names: tuple[str, ...]
    bytes: int | None
    """None if unknown: the compiler determines the size of a C source's variables, and some files have no symbols."""

    def __str__(self) -> str:
        if not self:
            return "unknown" if self.bytes is None else "none"
        size = "" if self.bytes is None else f"{self.bytes} bytes: "
        shown = ", ".join(self.names[:12]) or "unnamed data"
        return size + shown + (f", … ({len(self.names)} in all)" if len(self.names) > 12 else "")

    def __bool__(self) -> bool:
        return bool(self.names or self.bytes)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why an object cannot be linked."""

    kind: Kind
    text: str
    """What was found, without the name of the object."""
    expected: str | None = None
    hint: str | None = None
    remedy: str | None = None
    """What a manifest can add so that the object is accepted as it is."""
    symbol: str = ""
    """Kinds `undefined` and `tvm`: the symbol. Kind `effect`: the function or the instruction."""
    effects: tuple[str, ...] = ()
    """Kind `effect`: as in zephyr_module/scripts/effects.py."""

    def message(self, name: str, where: str = "") -> str:
        """Return the message of the error for the object `name`; `where` names the target."""
        if self.kind == "undefined":
            return f"{self.text} in {name}{where}"
        if self.kind == "tvm":
            return f"{self.text} in {name}: {REFUSED[self.symbol]}"
        if self.kind == "halide":
            return f"{self.text} in {name}"
        if self.kind in ("workspace", "effect"):
            return f"{name} {self.text}"
        return f"{name} has {self.text}" if self.kind == "state" else f"{name}: {self.text}"


@dataclass(frozen=True, slots=True)
class Link:
    """What surrounds an object in a link; by default nothing."""

    libc: str | None = None
    """None: the usual ones of the object's machine."""
    defined: Collection[str] = frozenset()
    """Symbols that other files define or `externals` declares."""
    externals: Collection[str] = frozenset()
    """Those of `defined` that only `externals` declares: functions of a library keep their effects."""
    permits: Collection[str] = frozenset()
    """The effects that the manifest permits; `state` includes writable variables."""
    workspace: bool = False
    """Whether an operator has a workspace."""


ALONE = Link()


def judge(item: Member | CSource, target: TargetAbi | None = None, link: Link = ALONE) -> list[Reason]:
    """Return every reason why an object cannot be linked, for a target or for its own ABI; empty if exportable."""
    return [*judge_file(item, target), *judge_symbols(item, link)]


def judge_file(item: Member | CSource, target: TargetAbi | None = None) -> list[Reason]:
    """Return the reasons that the object alone determines: its format, its ABI, its relocations."""
    if isinstance(item, CSource):
        return []
    machine = item.abi.machine
    abi = target or TargetAbi("its own ABI", machine, WORD_SIZES.get(machine, item.abi.bits), item.abi.endian)
    reasons = [Reason("file", text) for text in item.faults]
    if target is None and machine not in COMMON_MACHINES and machine not in machines():
        reasons.append(Reason("abi", f"compiled for an unknown machine: {machine}"))
    reasons += [Reason("abi", f.message, f.expected, f.hint) for f in abi_faults(item.abi, abi)]
    if not item.opaque:
        # Reading debug information takes time.
        reasons += [
            Reason("abi", f"compiled with {option}: {effect}", "the ABI of Zephyr", f"compile without {option}")
            for option, effect in (abi_options(item).faults if item.has_debug_information else ())
        ]
        try:
            reasons += [Reason("relocation", text) for text in relocation_faults(item, abi)]
        except ObjectError as fault:
            reasons.append(Reason("file", fault.message, fault.expected, fault.hint))
    return reasons


def unrecorded_options(item: Member) -> bool:
    """Return whether an object does not record the options of its compiler that change the ABI."""
    return not item.has_debug_information or abi_options(item).unknown is not None


def records_conventions(item: Member) -> bool:
    """Return whether the debug information of an object contains the calling conventions of functions, as clang's."""
    units = producers(item) if item.has_debug_information else ()
    return not isinstance(units, str) and bool(units) and all("clang" in producer for producer in units)


def judge_symbols(item: Member | CSource, link: Link = ALONE) -> list[Reason]:
    """Return the reasons found in symbols: undefined ones, functions of TVM's runtime, state, hidden effects."""
    if isinstance(item, Member) and item.opaque:
        return []
    if isinstance(item, Member) and is_hosted(item):
        return [Reason("file", HOSTED, expected="operators that need no operating system", hint=HOSTED_HINT)]
    if isinstance(item, Member) and item.defined.keys() >= {halide_symbols.ALLOCATE, "halide_error"}:
        # Its state and its effects are consequences.
        expected = "a pipeline without it: its memory would come from a heap"
        hint = "add no_runtime to Halide's target: x86-64-linux-no_runtime"
        return [Reason("halide", "a copy of Halide's runtime", expected, hint, symbol=halide_symbols.ALLOCATE)]
    if isinstance(item, Member) and (libraries := list(_libraries(item, link))):
        return libraries  # its state, its effects and other undefined symbols are consequences
    reasons = [*_undefined(item, link), *_tvm(item, link), *_halide(item, link), *_state(item, link)]
    return reasons + effects(item, link)


def state_of(item: Member | CSource) -> State:
    """Return the writable state of an object or a C source."""
    if (
        not item.state
        if isinstance(item, CSource)
        else not (item.opaque or item.stateful_symbols or item.sizes.writable)
    ):
        return State((), 0)
    from opwest.objects.languages import unwritten  # few files have state

    if isinstance(item, CSource):
        ignored = _IGNORED_STATE | unwritten(item)
        names = tuple(dict.fromkeys(name for name in item.state if name not in ignored))
        return State(names, None if names else 0)
    if item.opaque:
        return State((), None)
    ignored = _IGNORED_STATE | unwritten(item)
    names = tuple(dict.fromkeys(name for name in item.stateful_symbols if name not in ignored))
    foreign = sum(s.size for s in item.symbols if s.name in ignored and s.section in ("data", "bss", "common"))
    return State(names, item.sizes.writable - foreign)


def _state(item: Member | CSource, link: Link) -> Iterator[Reason]:
    state = state_of(item)
    thread_local = {s.name for s in item.symbols if s.kind == "tls"} if isinstance(item, Member) else set()
    if "state" in link.permits or not state or (state.names and thread_local.issuperset(state.names)):
        return  # thread-local variables have a reason of their own
    from opwest.objects.languages import state_hint

    amount = f" of {state.bytes} bytes" if state.bytes else ""
    yield Reason(
        "state",
        f"writable state{amount}: {', '.join(sorted(state.names)[:5]) or 'unnamed data'}",
        expected="operators without .data and .bss, so that models are reentrant",
        hint=state_hint(state.names)
        or "make it const, declare it under `run.state` and pass it as an argument, or set `stateful: true`",
        remedy="`stateful: true` permits it",
    )


def effects(item: Member | CSource, link: Link = ALONE) -> list[Reason]:
    """Return the called functions of the C library, and the instructions, with effects that are not permitted."""
    if isinstance(item, Member):
        named, libcs = item.undefined, (link.libc,) if link.libc else usual_libcs(item.abi.machine)
    else:
        named, libcs = item.library_calls, (link.libc,) if link.libc else ("host", DEFAULT_LIBC)
    called = [name for name in named if name not in link.defined or name in link.externals]
    return [
        Reason("effect", effect.text, EFFECT_EXPECTED, effect.hint, effect.remedy, effect.name, effect.effects)
        for effect in (*hidden_effects(called, libcs, link.permits), *instruction_effects(item, link.permits))
    ]


def _tvm(item: Member | CSource, link: Link) -> Iterator[Reason]:
    """Yield references to functions of TVM's runtime that are not supported, and to undeclared memory."""
    needed = _needed(tvm_functions(item), item, link)
    expected = "operators that use only their arguments and a workspace"
    hint = "in TVM, compile one function per operator, for the CPU, without threads"
    for symbol in sorted(needed & REFUSED.keys()):
        yield Reason("tvm", f"unsupported function {symbol!r}", expected, hint, symbol=symbol)
    yield from _workspace(ALLOCATE, needed, link)


def _halide(item: Member | CSource, link: Link) -> Iterator[Reason]:
    """Yield references to functions of Halide's runtime that are not provided, and to undeclared memory."""
    needed = _needed(item.calls if isinstance(item, CSource) else item.undefined_strong, item, link)
    expected = "a pipeline that uses only its arguments and a workspace"
    for symbol in sorted(needed):
        refusal = halide_symbols.refusal_of(symbol)
        if refusal is not None:
            yield Reason("halide", f"unsupported function {symbol!r}", expected, refusal[1], symbol=symbol)
    yield from _workspace(halide_symbols.ALLOCATE, needed, link)


def _needed(functions: Iterable[str], item: Member | CSource, link: Link) -> set[str]:
    """Return the functions that neither the file itself nor the rest of the link defines."""
    own = item.defined if isinstance(item, Member) else {f.name for f in item.c_functions}
    return {name for name in functions if name not in link.defined and name not in own}


def _workspace(function: str, needed: Collection[str], link: Link) -> Iterator[Reason]:
    """Yield the reason for a call of an allocation function without a workspace."""
    if function in needed and not link.workspace:
        yield Reason(
            "workspace",
            f"calls {function}, but no operator has a workspace",
            expected="'workspace' in the operators that allocate memory",
            remedy="`workspace` in the operators that allocate memory permits it",
        )


def _undefined(item: Member | CSource, link: Link) -> list[Reason]:
    if isinstance(item, CSource):
        return []
    machine = item.abi.machine
    libcs = (link.libc,) if link.libc else usual_libcs(machine)
    return [_undefined_reason(symbol, machine, libcs) for symbol in undefined_symbols(item, libcs, link.defined)]


def undefined_symbols(item: Member, libcs: Collection[str], defined: Collection[str]) -> Iterator[str]:
    """Yield the undefined symbols of an object that neither `defined`, the runtime nor a library provides."""
    for symbol in item.undefined_strong:
        if symbol in defined or symbol in item.defined or symbol in RUNTIME_SYMBOLS or symbol in REFUSED:
            continue
        if halide_symbols.refusal_of(symbol) is None and all(
            provider_of(symbol, item.abi.machine, libc) is None for libc in libcs
        ):
            yield symbol


def _libraries(item: Member, link: Link) -> Iterator[Reason]:
    """Yield one reason for each run-time library of a language that an object refers to."""
    libcs = (link.libc,) if link.libc else usual_libcs(item.abi.machine)
    undefined = list(undefined_symbols(item, libcs, link.defined))
    if not undefined:
        return
    from opwest.objects.languages import description, missing_libraries

    for library, symbols in missing_libraries(item, undefined):
        text = description(library, symbols)
        yield Reason("undefined", text, "operators without a run-time library", library.hint, symbol=symbols[0])


def usual_libcs(machine: str) -> tuple[str, ...]:
    """Return the C libraries that operators for a machine are linked with by default."""
    if machine in _HOST_MACHINES:
        return ("host",)
    return ("host", DEFAULT_LIBC) if machine == "aarch64" else (DEFAULT_LIBC,)


def _undefined_reason(symbol: str, machine: str, libcs: tuple[str, ...]) -> Reason:
    words = "the host's C library" if libcs == ("host",) else f"the C library ({' or '.join(libcs)})"
    hint, remedy = None, "another object or `externals` can define it"
    others = [libc for libc in LIBCS if libc not in ("host", *libcs) and provider_of(symbol, machine, libc)]
    if others and libcs != ("host",):
        hint = f"for firmware with {others[0]}, set libc: {others[0]}"
        remedy = f"`libc: {others[0]}` permits it"
    if symbol == "rust_eh_personality":
        hint = PERSONALITY_HINT
    if symbol.startswith("__stack_chk"):
        hint = "compile with -fno-stack-protector: prebuilt operators cannot use Zephyr's stack canaries"
    expected = f"a definition in another object, the runtime, libgcc, {words}, or externals"
    return Reason("undefined", f"undefined symbol {symbol!r}", expected, hint, remedy, symbol)


def verdict(reasons: Collection[Reason | str], item: Member | CSource | None) -> str:
    """Return `yes`, `after compilation` or `no`."""
    if reasons:
        return "no"
    return "after compilation" if isinstance(item, CSource) else "yes"
