# SPDX-License-Identifier: Apache-2.0
"""Extract facts from IR; in the child process only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from opwest.objects.llvm import text as ir
from opwest.objects.llvm.facts import LlvmError
from opwest.objects.llvm.magic import looks_like_ir, not_ir

Module = Any
"""llvmlite.binding.ModuleRef, which has no types."""

_VISIBLE = ("external", "weak", "weak_odr", "linkonce", "linkonce_odr", "common")
_LINKAGES = {
    "weak_any": "weak", "linkonce_any": "linkonce", "linkonce_odr_autohide": "linkonce_odr",
    "external_weak": "extern_weak",
}  # fmt: skip
_FLOATS = {"half": 16, "float": 32, "double": 64, "x86_fp80": 80, "fp128": 128, "ppc_fp128": 128}
_BY_REFERENCE = (b"byval", b"sret", b"inalloca", b"byref", b"preallocated")
_IN_REGISTER = b"inreg"
"""On i386, the argument is passed in a register (-mregparm)."""


@contextmanager
def parsed(content: bytes | str, owner: Any) -> Iterator[Module]:
    """Yield a verified module of `owner`; raise LlvmError."""
    kind = "text" if isinstance(content, str) else looks_like_ir(content)
    if kind is None:
        assert isinstance(content, bytes)
        raise not_ir(content)
    try:
        if kind == "bitcode":
            module = llvm.parse_bitcode(content, owner)
        else:
            module = llvm.parse_assembly(content if isinstance(content, str) else _plain(content), owner)
    except RuntimeError as fault:
        raise _refused(str(fault), kind) from fault
    with module:
        try:
            module.verify()
        except RuntimeError as fault:
            hint = "run 'opt -passes=verify' of the LLVM that generated it for details"
            raise LlvmError(f"invalid IR: {_line(str(fault))}", "valid IR", hint) from fault
        yield module


def _plain(content: bytes) -> str:
    """Return textual IR as a string."""
    if b"\0" in content:
        raise LlvmError("null byte in the text", "textual IR")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise LlvmError(f"the text is not UTF-8 (byte {fault.start})", "textual IR") from fault


def _line(words: str) -> str:
    lines = words.strip().splitlines()
    return lines[0].strip()[:300] if lines else "no reason given"


def _refused(words: str, kind: str) -> LlvmError:
    """Return the error for LLVM's message, with its line and column if given."""
    version = llvm.llvm_version_info[0]
    place = re.search(r"<string>:(\d+):(\d+): error: (.*)", words)
    if place:
        return LlvmError(f"line {place[1]}, column {place[2]}: {place[3]}", f"textual IR of LLVM {version} or older")
    message = _line(re.sub(r"^LLVM (?:IR|bitcode) parsing error\s*", "", words))
    hint = f"the file may be truncated, damaged, or from an LLVM newer than {version}"
    return LlvmError(f"cannot parse the file: {message}", f"{kind} of LLVM {version} or older", hint)


def facts_of(content: bytes, *, uses: bool) -> dict[str, Any]:
    """Return the facts about a module as JSON values; raise LlvmError."""
    with closing(llvm.create_context()) as owner, parsed(content, owner) as module:
        return module_facts(module, str(module), uses=uses)


# Functions are compiled without unwinding, and then without their personality routines.
_PERSONALITY = re.compile(r" personality ptr @[-\w$.]+(?= )")
# TVM emits empty lists, which contain no functions.
_CONSTRUCTORS = re.compile(r"^@llvm\.global_[cd]tors = appending (?!global \[0 x )", re.MULTILINE)


def module_facts(module: Module, text: str, *, uses: bool = False) -> dict[str, Any]:
    """Return the facts about a parsed module and its printed text."""
    functions = [_function(f) for f in module.functions if f.name and not f.name.startswith("llvm.")]
    if uses:
        _add_uses(module, text, functions)
    variables = list(ir.globals_of(text))
    conventions = ir.conventions_of(text)
    for function in functions:
        function["convention"] = conventions.get(function["name"], "")
    _add_aliases(variables, functions)
    own = [v for v in variables if not v.name.startswith("llvm.")]
    used = ir.used_names(_PERSONALITY.sub("", text))
    defined = {f["name"] for f in functions if f["is_definition"] and f["linkage"] in _VISIBLE}
    defined |= {v.name for v in own if v.is_definition and v.linkage in _VISIBLE}
    undefined = {f["name"] for f in functions if not f["is_definition"]}
    undefined |= {v.name for v in own if not v.is_definition}
    return {
        "triple": module.triple,
        "data_layout": module.data_layout,
        "functions": functions,
        "defined": sorted(defined),
        "undefined": sorted(undefined & used),
        "state": [v.name for v in own if v.kind == "global" and v.is_definition and not v.is_thread_local],
        "thread_local": [v.name for v in own if v.is_thread_local],
        "indirect_functions": [v.name for v in own if v.kind == "ifunc"],
        "has_constructors": _CONSTRUCTORS.search(text) is not None,
        "has_assembly": ir.has_assembly(text),
        "target_attributes": sorted(ir.target_attributes(text)),
        "target_abi": ir.target_abi(text),
        "has_debug_information": "\n!llvm.dbg.cu = " in text,
    }


def _add_aliases(variables: list[ir.GlobalLine], functions: list[dict[str, Any]]) -> None:
    """Add the second names of functions that the module defines: rustc and Zig export functions as aliases."""
    aliases = {v.name: v for v in variables if v.kind == "alias" and v.is_definition}
    known = {f["name"]: f for f in functions if f["is_definition"]}
    for alias in aliases.values():
        target, seen = alias.aliasee, {alias.name}
        while target in aliases and target not in seen:  # LLVM rejects cycles
            seen.add(target)
            target = aliases[target].aliasee
        if target in known:
            functions.append({**known[target], "name": alias.name, "linkage": alias.linkage})


def _function(function: Any) -> dict[str, Any]:
    linkage = function.linkage.name
    result, *parameters = (_type(str(t)) for t in function.global_value_type.elements)
    for index, argument in enumerate(function.arguments):
        if any(a.startswith(_BY_REFERENCE) or a == _IN_REGISTER for a in argument.attributes):
            parameters[index] = ["other", 0]
    return {
        "name": ir.symbol_of(function.name.encode()),
        "returns": result,
        "parameters": parameters,
        "convention": "",
        "uses": [],
        "variadic": bool(function.global_value_type.is_function_vararg),
        "is_definition": not function.is_declaration and linkage != "available_externally",
        "linkage": _LINKAGES.get(linkage, linkage),
    }


_ACCESS = re.compile(
    r"\b(?:load (?:atomic )?(?:volatile )?(?P<loaded>\w+), ptr"
    r"|store (?:atomic )?(?:volatile )?(?P<stored>\w+) [^,\n]+, ptr"
    r"|getelementptr(?: \w+)* (?P<indexed>\w+), ptr) (?P<name>%[\w.$-]+)"
)


_STORE = re.compile(
    r"(?P<register>%[\w.$-]+) = getelementptr [^,\n]*, ptr (?P<base>%[\w.$-]+)"
    r"|^ *store [^\n]*?, ptr (?P<stored>%[\w.$-]+)(?:,|$)",
    re.MULTILINE,
)


def _add_uses(module: Module, text: str, functions: list[dict[str, Any]]) -> None:
    """Add the use of parameters to the facts about functions with a body."""
    # Printing a function by itself takes as long as the whole module: the printed module has them in order.
    bodies = re.findall(r"^define .*?^\}", text, re.MULTILINE | re.DOTALL)
    defined = [f for f in module.functions if not f.is_declaration]
    if len(bodies) != len(defined):
        bodies = [""] * len(defined)
    uses = {ir.symbol_of(f.name.encode()): _uses(f, body) for f, body in zip(defined, bodies, strict=True)}
    for facts in functions:
        facts["uses"] = uses.get(facts["name"], [])


def _uses(function: Any, text: str) -> list[Any]:
    """Return the name of each parameter, whether it is only read or only written, and the type it points to."""
    elements: dict[str, set[str]] = {}
    for access in _ACCESS.finditer(text):
        elements.setdefault(access["name"], set()).add(access["loaded"] or access["stored"] or access["indexed"])
    roots: dict[str, str] = {}
    stored: set[str] = set()
    for found in _STORE.finditer(text):
        if found["stored"]:
            stored.add(roots.get(found["stored"], found["stored"]))
        else:
            roots[found["register"]] = roots.get(found["base"], found["base"])
    uses: list[Any] = []
    for index, argument in enumerate(function.arguments):
        attributes = set(argument.attributes)
        reads, writes = {b"readonly", b"readnone"} & attributes, b"writeonly" in attributes
        register = f"%{argument.name or index}"
        seen = elements.get(register, set()) - {"ptr"}
        known = "reads" if reads else "writes" if writes else "stores" if register in stored else "unknown"
        uses.append([argument.name, known, sorted(seen)])
    return uses


def _type(written: str) -> list[Any] | None:
    if written == "void":
        return None
    if written == "ptr":
        return ["pointer", 0]
    if written in _FLOATS:
        return ["float", _FLOATS[written]]
    integer = re.fullmatch(r"i(\d+)", written)
    return ["integer", int(integer[1])] if integer else ["other", 0]
