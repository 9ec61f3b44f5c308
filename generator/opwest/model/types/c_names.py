# SPDX-License-Identifier: Apache-2.0
"""All emitted C identifiers, and errors for names that clash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.model.types.model import Model, Operator

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# ISO C11 6.4.1, C23's additions, and GNU C's `asm` and `typeof`.
_C = """alignas alignof asm auto bool break case char const constexpr continue default do double else enum extern
false float for goto if inline int long nullptr register restrict return short signed sizeof static
static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void volatile
while""".split()
# ISO C++20 5.11, with the alternative tokens.
_CPP = """and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept
const_cast consteval constinit decltype delete dynamic_cast explicit export friend mutable namespace new
noexcept not not_eq operator or or_eq private protected public reinterpret_cast requires static_cast
template this throw try typeid typename using virtual wchar_t xor xor_eq""".split()
# Object-like macros in lower case. Nothing in the spelling of such a name shows that it is a macro, so they are listed;
# tests/compile/test_compile_names.py compares the list with the headers of the installed compilers.
_MACROS = """
arm far huge i386 linux m68k mc68000 mips near nios2 pascal pixel powerpc sparc sun unix vax vector
complex errno imaginary math_errhandling noreturn stderr stdin stdout
addrinfo alloca basename close closedir d_fileno direct eventfd eventfd_read eventfd_write fcntl fd_set h_addr h_errno
lseek mkdir no_argument open opendir optional_argument physadr pollfd quad read readdir rename required_argument
s6_addr s6_addr16 s6_addr32 sa_handler sa_sigaction sched_priority sigcontext_struct sigev_notify_attributes
sigev_notify_function signgam st_atime st_ctime st_mtime stat stat64 strtodf timeval tzname unlink write
ifa_broadaddr ifa_dstaddr ifc_buf ifc_req ifr_addr ifr_bandwidth ifr_broadaddr ifr_data ifr_dstaddr ifr_flags ifr_hwaddr
ifr_ifindex ifr_map ifr_metric ifr_mtu ifr_name ifr_netmask ifr_newname ifr_qlen ifr_slave msg_cbytes
si_addr si_addr_lsb si_arch si_band si_call_addr si_fd si_int si_lower si_overrun si_pid si_pkey si_ptr si_status
si_stime si_syscall si_timerid si_uid si_upper si_utime si_value
atomic_compare_exchange_strong_explicit atomic_compare_exchange_weak_explicit atomic_exchange_explicit
atomic_fetch_add_explicit atomic_fetch_and_explicit atomic_fetch_or_explicit atomic_fetch_sub_explicit
atomic_fetch_xor_explicit atomic_init atomic_load_explicit atomic_store_explicit
cache_data_disable cache_data_enable cache_data_flush_all cache_data_flush_and_invd_all cache_data_invd_all
cache_data_line_size_get cache_instr_disable cache_instr_enable cache_instr_flush_all cache_instr_flush_and_invd_all
cache_instr_invd_all cache_instr_line_size_get bluedata grant_entry_v1 mpuir_el1 prbar_el1 prlar_el1 prselr_el1
sys_bitfield_clear_bit sys_bitfield_set_bit sys_bitfield_test_and_clear_bit sys_bitfield_test_and_set_bit
sys_bitfield_test_bit sys_port_trace_k_poll_api_is_disabled sys_port_trace_k_thread_is_disabled
sys_port_trace_k_work_poll_is_disabled sys_port_trace_pm_is_disabled xen_wc_sec_hi zsock_fcntl zsock_ioctl zsock_pollfd
zsock_timeval""".split()

MAX_CHARACTERS = 200
"""Of a name: files are called <model>_devicetree.h, and file systems permit 255 bytes."""
_PREFIX = "m_"
_LOWER_CASE = re.compile(r"[a-z][a-z0-9_]*\Z")

KEYWORDS = frozenset(_C) | frozenset(_CPP)
MACROS = frozenset(_MACROS)


def fault_of_name(name: str) -> str | None:
    """Return why `name` cannot be used in C or C++, None if it can."""
    if len(name) > MAX_CHARACTERS:
        return f"has {counted(len(name), 'character')}"
    if not _IDENTIFIER.match(name):
        return "is not a C identifier"
    if name in KEYWORDS:
        return "is a keyword of C" if name in _C else "is a keyword of C++"
    if name[0] == "_" and re.match(r"_[_A-Z]", name):
        return "is reserved for the compiler and the C library"
    return None


def member_name(name: str) -> str:
    """Return the member of an emitted structure for a valid name of the manifest, the same on every board.

    A name in lower case is kept. A name with a capital letter, one that begins with _ or ends in _t, and a macro in
    lower case get a prefix: C libraries, Zephyr and vendors define macros of the first form and types of the third.
    None of their macros begins with m_; a suffix _ is that of include guards. No two names have the same member.
    """
    own = re.sub(rf"(?:{_PREFIX})+(?=.)", "", name) if name.startswith(_PREFIX) else name
    kept = _LOWER_CASE.match(own) and not own.endswith("_t") and own not in MACROS
    return name if kept else f"{_PREFIX}{name}"


def check_name(kind: str, name: str, location: Location | None, faults: Diagnostics) -> bool:
    """Report an invalid name; return whether it is valid. `kind` is the named entity: "operator"."""
    fault = fault_of_name(name)
    if fault is None:
        return True
    if len(name) > MAX_CHARACTERS:
        shown = f"{name[:30]}..."
        faults.error(f"{kind} name {shown!r} {fault}", location, expected=f"at most {MAX_CHARACTERS}")
        return False
    suggestion = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_") or "x"
    if suggestion[0].isdigit() or fault_of_name(suggestion) is not None:
        suggestion = f"{kind[0]}_{suggestion}"
    faults.error(
        f"{kind} name {name!r} {fault}",
        location,
        expected="letters, digits and _, beginning with a letter, other than a keyword of C or C++",
        hint=f"use a name such as {suggestion!r}",
    )
    return False


def is_symbol(name: str) -> bool:
    """Return whether `name` is a linker symbol that C code can refer to."""
    return bool(_IDENTIFIER.match(name)) and name not in KEYWORDS


# Headers of ISO C11 and POSIX, and those that Zephyr includes without a directory. The header of a model is <model>.h
# and must not hide one of these.
_SYSTEM_HEADERS = frozenset(
    """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar wchar wctype unistd pthread
    sched poll semaphore dirent fcntl termios syslog malloc device autoconf
    alloca cmdline cmsis_core exception getopt kernel_internal ksched mmu newlib nrf nrfx offsets pmp power reent soc
    strings system version""".split()
)
# Functions of C libraries and Zephyr with the names that a model's functions would have: fs_open(), k_work_queue_run().
# Macros of Kconfig and of devicetree begin with CONFIG_ and DT_.
_PREFIXES = frozenset(
    """bt_hci dbm dns_resolve evtchn f flash_area fs fts iconv icmsg ipc_service k_pipe k_work_queue modem_pipe mq
    pm_device_action posix sem semihost shm sip_svc stepper thread_analyzer zsock config dt""".split()
)
_WORKSPACE_MEMBERS = frozenset({"status", "opened", "slots", "input", "output", "profile"})


@dataclass(frozen=True, slots=True)
class CNames:
    """The identifiers of one model; `model` is its name."""

    model: str

    @property
    def macro(self) -> str:
        """The prefix of macros."""
        return self.model.upper()

    def function(self, verb: str) -> str:
        """`<model>_open`, `_run`, `_close`."""
        return f"{self.model}_{verb}"

    def constant(self, name: str) -> str:
        """The symbol of a constant in flash."""
        return f"{self.model}_constant_{name}"

    def vectors(self, index: int, tensor: str) -> str:
        """The symbol of golden vectors in the test image."""
        return f"{self.model}_vectors_{index}_{tensor}"

    @property
    def suite(self) -> str:
        """The name of the model's test suite, without `__`, which twister parses as the end of the name."""
        return re.sub("_+", "_", self.model).rstrip("_") or "model"

    @staticmethod
    def program(content: bytes) -> str:
        """The symbol of a program, derived from its bytes, so that all models of an image share it."""
        return f"opwest_program_{hashlib.sha256(content).hexdigest()[:32]}"

    def operator(self, symbol: str) -> str:
        """The linker symbol for a symbol that the model's objects define."""
        return f"{self.model}__{symbol}"

    def bridge(self, operator: str) -> str:
        """The wrapper with plain parameters of a packed or ffi operator, or of one with a workspace."""
        return f"{self.model}_bridge_{operator}"

    def packed_adapter(self, operator: str) -> str:
        """The adapter in microTVM's table for an operator of another calling convention."""
        return f"{self.model}_packed_{operator}"

    def callee(self, operator: Operator) -> str:
        """The function that run and the registry call for an operator."""
        return self.bridge(operator.name) if operator.is_bridged else self.operator(operator.symbol)

    def adapter(self, operator: str) -> str:
        """The function that calls an operator by name (file scope)."""
        return f"opwest_adapter_of_{operator}"  # no function of the runtime begins so

    def arguments(self, operator: str) -> str:
        """The table of an operator's arguments (file scope)."""
        return f"opwest_args_of_{operator}"

    def reaches(self, tensor: str) -> str:
        """The function that checks whether devices reach the caller's buffer."""
        return f"{self.model}_reaches_{tensor}"

    def device_macro(self, name: str) -> str:
        """The prefix of the macros of a device."""
        return f"{self.macro}_DEVICE_{name.upper()}"

    def host_device(self, name: str) -> str:
        """The substitute for a device on a host."""
        return f"{self.model}_host_{name}"

    def tensor_macro(self, role: str, name: str) -> str:
        """The prefix of the macros of an input or output."""
        return f"{self.macro}_{role.upper()}_{name.upper()}"

    def pool_macro(self, name: str) -> str:
        """The prefix of the macros of a pool."""
        return f"{self.macro}_POOL_{name.upper()}"

    @property
    def guard(self) -> str:
        """The include guard of the public header."""
        return f"OPWEST_MODEL_{self.macro}_H_"

    @property
    def kconfig(self) -> str:
        """The model's Kconfig symbol, without CONFIG_."""
        return f"OPWEST_MODEL_{self.macro}"

    @property
    def module(self) -> str:
        """The name of the Zephyr module and of its CMake library."""
        return f"opwest_{self.model}"


def reserved_model_name(name: str) -> tuple[str, str] | None:
    """Return why no model can have a valid name, and what is expected; None if one can."""
    lower, another = name.lower(), "another model name"
    if lower in _SYSTEM_HEADERS:
        return f"header {name}.h of model {name!r} hides a header of the C library or of Zephyr", another
    if lower.startswith("opwest"):
        text = f"model name {name!r} begins with 'opwest', the prefix of the runtime"
        return text, "a name that does not begin with opwest"
    if lower in _PREFIXES:
        return f"model name {name!r} is a prefix of names in Zephyr or the C library", another
    return None


def check_names(model: Model, faults: Diagnostics) -> None:
    """Report names of one model that clash after prefixing."""
    reserved = reserved_model_name(model.name)
    if reserved is not None:
        faults.error(reserved[0], model.location, expected=reserved[1])
    for pool in model.pools:
        if pool.name in _WORKSPACE_MEMBERS:
            faults.error(
                f"pool name {pool.name!r} is reserved for a member of the workspace",
                pool.location,
                expected=f"a name other than {', '.join(sorted(_WORKSPACE_MEMBERS))}",
            )
    _report_clashes(chain(_identifiers(model), _macros_of_interface(model)), faults)


def check_names_together(models: Sequence[Model], faults: Diagnostics) -> None:
    """Report names of several models that clash in one application."""
    first: dict[str, Model] = {}
    for model in models:
        other = first.setdefault(model.name.lower(), model)
        if other is not model:
            faults.error(
                f"duplicate model {model.name!r}"
                if other.name == model.name
                else f"models {other.name!r} and {model.name!r} differ only in case",
                model.location,
                expected="unique model names",
                hint=f"first defined at {other.location}",
            )
            return
    _report_clashes((item for model in models for item in _identifiers(model)), faults)


def _identifiers(model: Model) -> Iterator[tuple[str, str, Location]]:
    """Yield every identifier with external linkage and every macro prefix, with a description and a location."""
    names = CNames(model.name)
    for verb in (
        *("open", "run", "close", "model", "registry", "operators", "inputs", "outputs", "workspace", "devices"),
        *("device_table", "device_set", "call_device", "points", "run_profiled"),
        *("cancel", "runner_run", "runner_inputs", "runner_outputs"),
        *("reset", "save", "restore", "state", "views"),
        *("build", "constants", "buffers", "pool_places", "step_bindings", "details"),
    ):
        yield names.function(verb), f"{verb} of model {model.name!r}", model.location
    streaming = (
        *("submit", "poll", "frame", "stream", "stream_state", "stream_open", "stream_frame", "stream_notify"),
        *("stream_cancel", "stream_close", "abandoned"),
    )
    for verb in streaming if model.streams else ():
        yield names.function(verb), f"{verb} of model {model.name!r}", model.location
    for constant in model.constants:
        yield names.constant(constant.name), f"constant {constant.name!r} of model {model.name!r}", constant.location
    for role, interfaces in (("input", model.inputs), ("output", model.outputs)):
        for tensor in interfaces:
            yield names.tensor_macro(role, tensor.name), f"{role} {tensor.name!r}", tensor.location
    for name, tensor in {t.name: t for t in (*model.inputs, *model.outputs)}.items():
        yield names.reaches(name), f"check of tensor {name!r}", tensor.location
    for device in model.devices:
        yield names.host_device(device.name), f"device {device.name!r}", device.location
        yield names.device_macro(device.name), f"device {device.name!r}", device.location
    for pool in model.pools:
        yield names.pool_macro(pool.name), f"pool {pool.name!r}", pool.location
    for operator in model.operators:
        if operator.is_bridged:
            yield names.bridge(operator.name), f"call of operator {operator.name!r}", operator.location
        if model.compat == "tvm-crt-all" and not operator.convention.is_of_system_library:
            yield names.packed_adapter(operator.name), f"adapter of operator {operator.name!r}", operator.location
    symbols = {operator.symbol for operator in model.operators}
    for symbol in sorted(symbols.union(*((*build.renames, *build.scope) for build in model.builds))):
        yield names.operator(symbol), f"symbol {symbol!r}", model.location


def _macros_of_interface(model: Model) -> Iterator[tuple[str, str, Location]]:
    """Yield the macros of microTVM's C interface."""
    tvmgen = model.tvmgen
    if tvmgen is None:
        return
    yield tvmgen.workspace_macro, "the size of the workspace", tvmgen.location
    sizes: dict[str, int] = {}
    for role, interfaces in (("input", model.inputs), ("output", model.outputs)):
        # Equal members are reported as such; equal definitions do not clash.
        for member, tensor in {tvmgen.member(t.name): t for t in interfaces}.items():
            macro = tvmgen.size_macro(member)
            if sizes.get(macro) == tensor.type.size:
                continue
            sizes[macro] = tensor.type.size
            yield macro, f"the size of {role} {tensor.name!r} in {tvmgen.prefix}.h", tensor.location
    for pool in tvmgen.pools:
        yield f"{tvmgen.pool_macro(pool)}_SIZE", f"the size of pool {pool!r} in {tvmgen.prefix}.h", tvmgen.location


def _report_clashes(identifiers: Iterable[tuple[str, str, Location]], faults: Diagnostics) -> None:
    first: dict[str, tuple[str, Location]] = {}
    for identifier, what, location in identifiers:
        if identifier in first:
            other, at = first[identifier]
            faults.error(
                f"{what} and {other} both map to the C identifier {identifier!r}",
                location,
                expected="names that differ after prefixing",
                hint=f"the other name is at {at}",
            )
        else:
            first[identifier] = (what, location)
