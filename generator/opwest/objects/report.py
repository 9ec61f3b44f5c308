# SPDX-License-Identifier: Apache-2.0
"""The output of `opwest inspect`: facts about an object as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from opwest.base.diagnostics import printable
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted, table_lines
from opwest.objects.compat import TargetAbi
from opwest.objects.compilers import abi_options
from opwest.objects.dwarf_signatures import NO_DEBUG_INFORMATION, signatures
from opwest.objects.dwarf_types import DwarfSignature
from opwest.objects.facts import Abi, CSource, Member, ObjectError, ObjectFile, Sizes, Symbol
from opwest.objects.halide_symbols import PROVIDED as HALIDE_PROVIDED
from opwest.objects.library_symbols import LIBCS, LINKER, provider_of
from opwest.objects.linkability import Link, Reason, judge, state_of, verdict
from opwest.objects.stack import UNKNOWN, StackUse, stack_usage
from opwest.objects.tvm_symbols import POINTERS, PROVIDED, REFUSED

_LABEL = 13
_FLOAT_WORDS = {
    "soft": "soft float (no FPU)",
    "softfp": "softfp (FPU used, arguments in integer registers)",
    "hard": "hard float (arguments in FPU registers)",
    "any": "any float ABI",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """The target and the C library that files are judged for; by default each file for its own machine."""

    target: TargetAbi | None = None
    libc: str | None = None
    compiled_for: str | None = None
    """The named target for which LLVM IR was compiled to the object."""


OWN_MACHINE = Requirement()


def as_text(path_label: str, item: ObjectFile | CSource, required: Requirement = OWN_MACHINE) -> str:
    """Return the facts about a file as aligned text that ends with a newline."""
    reasons = judgements(item, required)
    if isinstance(item, CSource):
        lines = _source_lines(item, reasons[0])
    else:
        lines = _object_lines(item, reasons, required.compiled_for)
    return "\n".join([_heading(path_label, item, reasons, required.compiled_for), *lines]) + "\n"


def as_json(path_label: str, item: ObjectFile | CSource, required: Requirement = OWN_MACHINE) -> dict[str, Any]:
    """Return the facts about a file as plain JSON values."""
    reasons = judgements(item, required)
    if isinstance(item, CSource):
        return {
            "file": path_label,
            "kind": "c" if item.language == "C" else "c++",
            "functions": [
                {
                    "name": f.name,
                    "returns": f.returns,
                    "parameter_count": f.parameters,
                    "static": f.is_static,
                    "mangled": f.mangled if item.language == "C++" else None,
                    "line": f.line,
                }
                for f in item.functions
            ],
            "globals": list(item.globals),
            "includes": list(item.includes),
            "calls": list(item.calls),
            "unread_lines": list(item.unread),
            **_judgement_json(item, reasons[0]),
        }
    return {
        "file": path_label,
        "kind": "llvm-ir" if required.compiled_for else item.kind,
        "target": required.compiled_for,
        "exportable": not any(reasons),
        "bytes": asdict(sum((m.sizes for m in item.members), Sizes())),
        "members": [_member_json(*both, required.compiled_for) for both in zip(item.members, reasons, strict=True)],
    }


def judgements(item: ObjectFile | CSource, requirement: Requirement) -> list[list[Reason]]:
    """Return the reasons why a C source, or each member of a file, cannot be linked; each file is judged alone."""
    link = Link(requirement.libc)
    if isinstance(item, CSource):
        return [judge(item, requirement.target, link)]
    defined = {name for member in item.members if not member.opaque for name in member.defined} - POINTERS
    return [judge(member, requirement.target, Link(requirement.libc, defined)) for member in item.members]


def _judgement_json(item: Member | CSource, reasons: Sequence[Reason]) -> dict[str, Any]:
    state = state_of(item)
    return {
        "exportable": not reasons,
        "reasons": [reason.text for reason in reasons],
        "remedies": [reason.remedy for reason in reasons if reason.remedy],
        "state_bytes": state.bytes,
        "variables": list(state.names),
        "effects": [
            {"symbol": reason.symbol, "effects": list(reason.effects)} for reason in reasons if reason.kind == "effect"
        ],
    }


def _stack(member: Member) -> dict[str, StackUse]:
    """Return the stack of the functions of an object, empty if its tables are damaged."""
    try:
        return stack_usage(member)
    except ObjectError:
        return {}


def _definition_json(symbol: Symbol, stack: dict[str, StackUse], known: dict[str, DwarfSignature]) -> dict[str, Any]:
    use = stack.get(symbol.name, UNKNOWN) if symbol.kind == "function" else UNKNOWN
    use_json = {"bytes": use.bytes, "exact": use.exact, "source": use.source}
    return {
        **{key: getattr(symbol, key) for key in ("name", "kind", "section", "binding")},
        "bytes": symbol.size,
        "stack": use_json if use.bytes is not None else None,
        "signature": str(known[symbol.name]) if symbol.kind == "function" and symbol.name in known else None,
    }


def _member_json(member: Member, reasons: Sequence[Reason], compiled_for: str | None) -> dict[str, Any]:
    abi = member.abi
    stack, described = _stack(member), signatures(member)
    known: dict[str, DwarfSignature] = {} if isinstance(described, str) else described
    return {
        "name": member.name,
        "abi": {name: getattr(abi, name) for name in ("machine", "bits", "endian", "arch", "float_abi", "eabi")},
        "bytes": asdict(member.sizes),
        "signature_count": None if isinstance(described, str) else len(described),
        "signatures_fault": described if isinstance(described, str) else None,
        "abi_options": "unknown" if not compiled_for and abi_options(member).unknown else "verified",
        **_judgement_json(member, reasons),
        "defined": [_definition_json(symbol, stack, known) for symbol in member.defined.values()],
        "undefined": [
            {"name": name, "weak": weak, "provided_by": usual_providers(name, abi.machine)}
            for names, weak in ((member.undefined_strong, False), (member.undefined_weak, True))
            for name in names
        ],
    }


def usual_providers(symbol: str, machine: str) -> list[str]:
    """Return the providers of a symbol, by libc if they differ: `libgcc`, `libm`, `libc`, `newlib`, …"""
    if symbol in PROVIDED or symbol in HALIDE_PROVIDED:
        return ["opwest's runtime"]
    names = [provider_of(symbol, machine, libc) for libc in LIBCS if _fits(machine, libc)]
    who = [name for name in names if name is not None]
    for everywhere in ("libgcc", LINKER):
        if everywhere in who:
            return [everywhere]
    word = "libm" if any(name.endswith("(libm)") for name in who) else "libc"
    if len(who) == len(names) or word == "libm":
        return [word]
    return [name for name in who if name in LIBCS]


def _fits(machine: str, libc: str) -> bool:
    """Whether firmware for a machine can use a libc; the host's only on machines that can be the host."""
    return (libc == "host") == (machine in ("x86-64", "i386")) or machine == "aarch64"


def _heading(
    label: str, item: ObjectFile | CSource, reasons: Sequence[Sequence[Reason]], compiled_for: str | None
) -> str:
    if isinstance(item, CSource):
        return f"{printable(label)}: {item.language} source, compiled with the firmware"
    if compiled_for:
        return f"{printable(label)}: LLVM IR, compiled for {compiled_for}"
    if item.kind == "elf":
        return f"{printable(label)}: ELF object"
    count = len(item.members)
    faulty = sum(map(bool, reasons))
    summary = "all exportable" if not faulty else f"{faulty} of them not exportable"
    return f"{printable(label)}: archive, {count} object{'' if count == 1 else 's'}, {summary}"


def _row(label: str, *values: str) -> list[str]:
    """Return a labelled block, one line per value."""
    if not values:
        return []
    return [f"  {label:<{_LABEL}} {values[0]}", *(f"  {'':<{_LABEL}} {v}" for v in values[1:])]


def _columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows with their columns aligned."""
    return table_lines([[printable(cell) for cell in row] for row in rows])


def abi_words(abi: Abi) -> str:
    """Return the machine and its ABI in words."""
    words = [abi.machine, f"{abi.bits} bits", f"{abi.endian}-endian"]
    if abi.arch:
        words.append(abi.arch)
    if abi.float_abi:
        known = _FLOAT_WORDS if abi.machine == "arm" else {}
        words.append(known.get(abi.float_abi, f"{abi.float_abi} float ABI"))
    if abi.eabi is not None:
        words.append(f"EABI {abi.eabi}")
    return ", ".join(printable(w) for w in words)


def _size_words(sizes: Sizes) -> str:
    return f"{sizes.code} bytes code, {sizes.constant} constant, {sizes.data} data, {sizes.bss} bss"


def _object_lines(item: ObjectFile, reasons: Sequence[Sequence[Reason]], compiled_for: str | None) -> list[str]:
    lines: list[str] = []
    if item.kind == "archive":
        lines += _row("total", _size_words(sum((m.sizes for m in item.members), Sizes())))
    for member, why in zip(item.members, reasons, strict=True):
        if item.kind == "archive":
            lines += ["", printable(member.name)]
        lines += _member_lines(member, why, compiled_for)
    return lines


def _verdict_rows(item: Member | CSource, reasons: Sequence[Reason]) -> list[str]:
    word = verdict(reasons, item)
    # Only reasons of run-time libraries are undefined symbols without a remedy.
    remedies = [r.remedy or (r.hint if r.kind == "undefined" else None) for r in reasons]
    texts = [printable(f"{r.text} ({more})" if more else r.text) for r, more in zip(reasons, remedies, strict=True)]
    return _row("exportable", *([f"{word}: {texts[0]}", *(f"    {text}" for text in texts[1:])] if texts else [word]))


def _member_lines(member: Member, reasons: Sequence[Reason], compiled_for: str | None) -> list[str]:
    unknown = None if compiled_for or member.opaque else abi_options(member).unknown
    return [
        *_row("machine", abi_words(member.abi)),
        *_row("size", _size_words(member.sizes)),
        *_row("state", printable(str(state_of(member)))),
        *_row("defines", *(_columns(_definition_rows(member)) or ["none"])),
        *_row("signatures", *_signature_words(member)),
        *_row("ABI options", *([printable(f"unknown: {unknown}")] if unknown else [])),
        *_row("needs", *(_columns(_need_rows(member)) or ["none"])),
        *_verdict_rows(member, reasons),
    ]


def _definition_rows(member: Member) -> list[tuple[str, ...]]:
    kinds = {"other": "symbol", "tls": "thread-local", "object": "variable", "function": "function"}
    rows: list[tuple[str, ...]] = []
    stack = {name: use for name, use in _stack(member).items() if use.bytes is not None}
    for symbol in member.defined.values():
        kind = kinds[symbol.kind]
        if symbol.section == "constant" and symbol.kind == "object":
            kind = "constant"
        weak = "weak" if symbol.binding == "weak" else ""
        use = (f"stack {stack[symbol.name]}" if symbol.name in stack else "",) if stack else ()
        rows.append((symbol.name, kind, f"{counted(symbol.size, 'byte')}" if symbol.size else "", *use, weak))
    return rows


def _signature_words(member: Member) -> list[str]:
    """Return the number of signatures in the debug information, empty without debug information."""
    described = signatures(member)
    if isinstance(described, str):
        return [] if described == NO_DEBUG_INFORMATION else [printable(described)]
    functions = sum(s.kind == "function" for s in member.defined.values())
    return [f"{len(described)} of {functions} function{'' if functions == 1 else 's'} in the debug information"]


def _need_rows(member: Member) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in member.undefined:
        who = usual_providers(name, member.abi.machine)
        weak = "weak, " if name in member.undefined_weak else ""
        unknown = f"unsupported: {REFUSED[name]}" if name in REFUSED else "unknown: another object or a driver"
        rows.append((name, weak + (" or ".join(who) or unknown)))
    return rows


def _source_lines(source: CSource, reasons: Sequence[Reason]) -> list[str]:
    functions = []
    for function in source.functions:
        count = function.parameters
        arguments = "variable arguments" if count is None else f"{count} argument{'' if count == 1 else 's'}"
        linkage = "static" if function.is_static else "C++ linkage" if function.mangled else ""
        functions.append((function.name, function.returns, arguments, f"line {function.line}", linkage))
    calls = [f"{name}{' (libm)' if 'libm' in usual_providers(name, '') else ''}" for name in source.calls]
    unread = f"not parsed as {source.language}: line {', '.join(map(str, source.unread[:8]))}"
    return [
        *_row("defines", *(_columns(functions) or ["no functions"])),
        *_row("variables", *map(printable, source.globals)),
        *_row("state", printable(str(state_of(source)))),
        *_row("includes", *([", ".join(map(printable, source.includes))] if source.includes else [])),
        *_row("calls", *([", ".join(map(printable, calls))] if calls else [])),
        *_row("unread", *([unread] if source.unread else [])),
        *_verdict_rows(source, reasons),
    ]
