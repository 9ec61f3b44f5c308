# SPDX-License-Identifier: Apache-2.0
"""Read and change IR in the form printed by LLVM.

llvmlite cannot set sections, remove attributes or distinguish constants from variables, so these
steps work on text. It is always text that LLVM itself has printed: one line per variable, function
header and attribute group, function attributes only in groups, no quote inside a string (LLVM
writes it as `\\22`), comments only after `;`. Source: llvm/lib/IR/AsmWriter.cpp.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.llvm.facts import LlvmError

_IDENTIFIER = r'(?:"[^"\n]*"|[-\w$.]+)'
# A global name; or a string or comment, which can contain the text of one.
_TOKEN = re.compile(rf'@(?P<name>{_IDENTIFIER})|"[^"]*"|;[^\n]*', re.ASCII)
_GLOBAL = re.compile(
    rf"^@(?P<name>{_IDENTIFIER}) = (?P<words>(?:[a-z_]+(?:\([^()\n]*\))? )*?)"
    r"(?P<kind>global|constant|alias|ifunc) (?P<rest>[^\n]*)$",
    re.ASCII | re.MULTILINE,
)
_ALIASEE = re.compile(rf', ptr @(?P<name>{_IDENTIFIER})(?:, partition "[^"]*")?$', re.ASCII)
_DEFINE = re.compile(r"^define [^\n]*$", re.MULTILINE)
# Before the type of the result; attributes with the same form (`cc 10` is GHC's) do not exist.
_CONVENTION = re.compile(r" (?!arm_aapcs|x86_64_sysvcc)(?:[a-z]\w*cc|cc \d+|swifttailcc) (?=.)", re.ASCII)
_GROUP = re.compile(r"^(attributes #\d+ = \{)([^\n]*)\}$", re.MULTILINE)
_ATTRIBUTE = re.compile(r'"[^"]*"(?:="[^"]*")?|[^\s"()]+(?:\((?:[^()"]|"[^"]*"|\([^()]*\))*\))?')
_TARGET_ATTRIBUTE = re.compile(r'"(target-cpu|tune-cpu|target-features)"="([^"]*)"')
# What may follow an initialiser.
_TAIL = re.compile(
    rf'((?:, (?:section "[^"]*"|partition "[^"]*"|comdat(?:\(\${_IDENTIFIER}\))?|align \d+|code_model "[^"]*"'
    r"|(?:no_)?sanitize_\w+|![-\w.$]+ ![^,\s]+))*)((?: #\d+)*)$",
    re.ASCII,
)
_TAIL_SIZE = 4096
_ZERO = re.compile(r"(?:^| )(?:zeroinitializer|null|undef|poison|false|0|0\.0+e\+00|f?0x[HKLMR]?0+)$")
_STRING = re.compile(r'^\[\d+ x i(?:8|16|32)\] (?:c"[^"]*\\00"|zeroinitializer)$')
_AFTER_PARAMETERS = re.compile(r'(?: (?:local_)?unnamed_addr)?(?: addrspace\((?:\d+|"[^"]*")\))?(?: #\d+)*')
_ASSEMBLY = re.compile(
    r'^module asm "|(?<![-\w$.%@!"])asm (?:sideeffect |alignstack |inteldialect |unwind )*"[^"]', re.M
)
_TARGET_ABI = re.compile(r'!\{i32 \d+, !"target-abi", !"([^"]*)"\}')
_FOREIGN_ATTRIBUTES = frozenset({"target-cpu", "tune-cpu", "target-features", "use-soft-float"})
_PLAIN_ATTRIBUTES = frozenset({"optnone", "optsize", "minsize", "optdebug", "uwtable"})


def decode_name(written: str) -> str:
    """Return the symbol of a name in IR, quoted or not."""
    inner = written[1:-1] if written.startswith('"') else written
    escape = rb"\\([0-9A-Fa-f]{2})"
    return symbol_of(re.sub(escape, lambda m: bytes([int(m[1], 16)]), inner.encode("utf-8", "surrogateescape")))


def symbol_of(raw: bytes) -> str:
    """Return the symbol for the bytes of a name in LLVM."""
    # \1: LLVM uses the rest without a prefix of the target.
    return raw.removeprefix(b"\1").decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class GlobalLine:
    """A variable, alias or ifunc of a module."""

    name: str
    kind: str
    linkage: str
    is_thread_local: bool
    aliasee: str | None = None
    """Of an alias: the global that it is a second name of; None if an expression computes its address."""

    @property
    def is_definition(self) -> bool:
        """Whether the object defines it."""
        return self.linkage not in ("external declaration", "extern_weak", "available_externally")


_LINKAGES = frozenset(
    "private internal available_externally linkonce linkonce_odr weak weak_odr appending common extern_weak".split()
)


def globals_of(text: str) -> Iterator[GlobalLine]:
    """Yield variables, aliases and ifuncs in order; `llvm.…` ones included."""
    for match in _GLOBAL.finditer(text):
        words = match["words"].split()
        linkage = next((w for w in words if w in _LINKAGES), "external")
        if linkage == "external" and "external" in words:
            linkage = "external declaration"
        is_thread_local = any(w.startswith("thread_local") for w in words)
        target = _ALIASEE.search(match["rest"]) if match["kind"] == "alias" else None
        aliasee = decode_name(target["name"]) if target else None
        yield GlobalLine(decode_name(match["name"]), match["kind"], linkage, is_thread_local, aliasee)


def conventions_of(text: str) -> dict[str, str]:
    """Return the calling conventions of defined functions by name, without those with that of C.

    Arm's `arm_aapcscc` and `arm_aapcs_vfpcc` differ from it at most in floats, as the triples of targets do;
    `x86_64_sysvcc` is that of C on the host.
    """
    conventions: dict[str, str] = {}
    for line in _DEFINE.finditer(text):
        name = next((m for m in _TOKEN.finditer(line[0]) if m["name"] is not None), None)
        word = _CONVENTION.search(line[0], 0, name.start()) if name else None
        if name and word:
            conventions[decode_name(name["name"])] = word[0].strip()
    return conventions


def used_names(text: str) -> set[str]:
    """Return the names of globals that occur other than where they are declared or defined."""
    counts = Counter(m["name"] for m in _TOKEN.finditer(text) if m["name"] is not None)
    return {decode_name(name) for name, count in counts.items() if count > 1}


def has_assembly(text: str) -> bool:
    """Whether there is assembly that needs a parser; an empty string is only a barrier and needs none."""
    return "asm " in text and _ASSEMBLY.search(text) is not None


def target_attributes(text: str) -> set[str]:
    """Return the distinct `target-cpu=…` and the like of all attribute groups."""
    groups = (_TARGET_ATTRIBUTE.findall(group[2]) for group in _GROUP.finditer(text))
    return {f"{key}={value}" for attributes in groups for key, value in attributes}


def target_abi(text: str) -> str | None:
    """Return the module flag target-abi."""
    match = _TARGET_ABI.search(text)
    return match[1] if match else None


def without_foreign_attributes(text: str) -> str:
    """Return the text without attributes that override the target machine or the optimisation, or need unwind tables.

    A group that becomes empty, which LLVM would not parse, gets an attribute without effect.
    """

    def cleaned(group: re.Match[str]) -> str:
        if rest := _ATTRIBUTE.sub("", group[2]).strip():
            raise LlvmError(f"cannot parse function attributes at {rest[:40]!r}", "attributes of LLVM 22")
        kept = [item for item in _ATTRIBUTE.findall(group[2]) if not _is_dropped(item)]
        attributes = " ".join(kept) or '"opwest"'
        return f"{group[1]} {attributes} }}"

    return _GROUP.sub(cleaned, text)


def _is_dropped(item: str) -> bool:
    if item.startswith('"'):
        return item[1:].partition('"')[0] in _FOREIGN_ATTRIBUTES
    return item.partition("(")[0] in _PLAIN_ATTRIBUTES


def without_enum_size(text: str) -> str:
    """Return the text with the module flag for the size of enums renamed, so that it has no effect.

    Clang writes it for Arm; GNU ld compares it with the short enums of GCC for bare metal and warns,
    although operators take pointers and numbers.
    """
    return re.sub(
        r'^(!\d+ = !\{i32 \d+, !")min_enum_size(", i32 \d+\})$', r"\1opwest_min_enum_size\2", text, flags=re.M
    )


def with_plain_source_name(text: str) -> str:
    """Return the text without the directory in the source's name, which would be stored in the object."""
    return re.sub(
        r'^source_filename = "(?:[^"\n]*[/\\])?([^"\n]*)"$', r'source_filename = "\1"', text, count=1, flags=re.M
    )


def with_sections(text: str, *, position_independent: bool, jump_tables: bool) -> str:
    """Return the text with a separate section for each function and variable without one.

    Without `jump_tables`, functions do not use any: LLVM puts those of all functions into one
    section, which would keep every function of the object in the firmware.
    """
    attributes = "" if jump_tables else ' "no-jump-tables"="true"'

    function = partial(_placed_function, attributes=attributes)
    variable = partial(_placed_variable, position_independent=position_independent)
    return _GLOBAL.sub(variable, _DEFINE.sub(function, text))


def _section_name(prefix: str, written: str) -> str:
    """Return the section for a global, in the form IR writes it."""
    inner = written.strip('"').removeprefix("\\01")
    # The linker merges the content of .rodata.cst4 and .rodata.str1.1.
    return f'"{prefix}{"_" if re.match(r"(?:cst|str)[0-9]", inner) else ""}{inner}"'


def _placed_function(match: re.Match[str], attributes: str) -> str:
    line = match[0]
    name = next((m for m in _TOKEN.finditer(line) if m["name"] is not None), None)
    if name is None or " available_externally " in line[: name.start()]:
        return line
    depth, end = 0, name.end()
    for mark in re.finditer(r'"[^"]*"|[()]', line[name.end() :]):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if depth == 0:
            end += mark.end()
            break
    after = _AFTER_PARAMETERS.match(line, end)
    at = after.end() if after else end
    section = "" if line.startswith(' section "', at) else f" section {_section_name('.text.', name['name'])}"
    return line[:at] + attributes + section + line[at:]


def _placed_variable(match: re.Match[str], position_independent: bool) -> str:
    line, words = match[0], match["words"].split()
    left_alone = {"external", "extern_weak", "available_externally", "appending", "common"}
    if match["kind"] in ("alias", "ifunc") or left_alone.intersection(words) or "thread_local" in match["words"]:
        return line
    rest = match["rest"]
    tail = _TAIL.search(rest, max(0, len(rest) - _TAIL_SIZE))
    if tail is None or ', section "' in tail[1] or decode_name(match["name"]).startswith("llvm."):
        return line
    value = rest[: tail.start()]
    constant = match["kind"] == "constant"
    if constant and "private" in words and "unnamed_addr" in words and _STRING.match(value):
        return line  # the linker merges equal strings
    if not constant:
        prefix = ".bss." if _ZERO.search(value) else ".data."
    elif position_independent and "@" in value and "@" in re.sub(r'"[^"]*"', "", re.sub(r'@"', "@", value)):
        prefix = ".data.rel.ro."
    else:
        prefix = ".rodata."
    section = f", section {_section_name(prefix, match['name'])}"
    return line[: match.start("rest") - match.start() + tail.start()] + tail[1] + section + tail[2]
