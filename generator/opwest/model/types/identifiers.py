# SPDX-License-Identifier: Apache-2.0
"""Names that are valid identifiers in both C and C++."""

from __future__ import annotations

import re

from opwest.base.diagnostics import Diagnostics, Location

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

MOST_CHARACTERS = 200
"""Of a name: files are called <model>_devicetree.h, and file systems permit 255 bytes."""
_PREFIX = "m_"
_LOWER_CASE = re.compile(r"[a-z][a-z0-9_]*\Z")

KEYWORDS = frozenset(_C) | frozenset(_CPP)
MACROS = frozenset(_MACROS)


def fault_of_name(name: str) -> str | None:
    """Return why `name` cannot be used in C or C++, None if it can."""
    if len(name) > MOST_CHARACTERS:
        return f"has {len(name)} characters"
    if not _IDENTIFIER.match(name):
        return "is not a C identifier"
    if name in KEYWORDS:
        return "is a keyword of C" if name in _C else "is a keyword of C++"
    if name.startswith("__") or re.match(r"_[A-Z]", name):
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
    if len(name) > MOST_CHARACTERS:
        shown = f"{name[:30]}..."
        faults.error(f"{kind} name {shown!r} {fault}", location, expected=f"at most {MOST_CHARACTERS}")
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
