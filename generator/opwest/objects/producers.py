# SPDX-License-Identifier: Apache-2.0
"""Options of the compiler that change the ABI and that ELF does not record, from debug information (DW_AT_producer).

GCC records its options in DW_AT_producer (-grecord-gcc-switches, the default); clang with -grecord-command-line. rustc
and Zig have no such options. Sources: GCC manual, "Options for Code Generation Conventions" and "x86 Options".
"""

from __future__ import annotations

import re
from typing import Final

from opwest.objects.dwarf import producers
from opwest.objects.facts import Member
from opwest.records import dataclass

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
    found = producers(member)
    if isinstance(found, str):
        return AbiOptions(unknown=f"{found}; {_undetected(member)}")
    faults: dict[str, str] = {}
    for option in {word for producer in found for word in producer.split()}:
        effect = abi_effect(option)
        if effect is not None:
            faults[option] = effect
    silent = next((p for p in found if not _RECORDED.match(p) and " -" not in p), None)
    unknown = (
        None
        if silent is None
        else f"{silent.partition('(')[0].strip() or 'the compiler'} records no options; {_undetected(member)}"
    )
    return AbiOptions(tuple(sorted(faults.items())), unknown)


def _undetected(member: Member) -> str:
    examples = "-mabi=ms or " if member.abi.machine == "x86-64" else ""
    return f"{examples}-fcall-saved-REG cannot be detected"
