# SPDX-License-Identifier: Apache-2.0
"""Parser for the C code of TVM: functions with their bodies, and the values of constant arrays.

In TVM's code, definitions begin at the start of a line and end with the first `}` at the start of a line.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault
from opwest.model.types.dtypes import DTYPES, dtype_of_c

_DEFINITION = re.compile(
    r"^(?:TVM_DLL[ \t]+)?(int32_t|int|void)[ \t]+(\w+)[ \t]*\(([^()]{0,20000})\)\s*\{", re.MULTILINE
)
_END = re.compile(r"^\}", re.MULTILINE)
_WIDE = re.compile(r"\s{3,}")
_PARAMETER = re.compile(
    r"\s*(?:const\s+)?(?:struct\s+)?(\w+)(\s*(?:\*\s*(?:const\s+|restrict\s+|__restrict\s+)*)+|\s+)(\w+)\s*\Z"
)
_ARRAY = re.compile(
    r"^static\s+(const\s+)?(?:struct\s+)?(\w+)\s+(?:__attribute__\s*\(\((.{0,200}?)\)\)\s*)?(\w+)\s*\[\s*(\d{1,10})\s*\]\s*(=|;)",
    re.MULTILINE,
)
ALIGNED = re.compile(r"aligned\((\d{1,5})\)")
"""An alignment in an attribute of GCC."""
_NUMBER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F.]+(?:[pP][-+]?\d+)?|[0-9.]+(?:[eE][-+]?\d+)?|inf\w*|nan\w*|INFINITY|NAN)[fFlLuU]*"
)
_COMMENTS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.DOTALL | re.MULTILINE
)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_HEAD = re.compile(r"^[A-Za-z_][^;={}#\n]{0,400}?\b(\w+)[ \t]*\(", re.MULTILINE)
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_KEYWORDS = frozenset("if for while switch return sizeof do else defined __attribute__ aligned section int".split())


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function: `float* p0` has the type float, one star."""

    type: str
    stars: int
    name: str

    @property
    def dtype(self) -> str | None:
        """The element type of a pointer type; None for void and others."""
        known = dtype_of_c(self.type)
        return known.name if known else None


@dataclass(frozen=True)
class Function:
    """A function definition. `start` and `end` are its range in the text; `body` has no long runs of white space."""

    name: str
    returns: str
    parameters: tuple[Parameter, ...]
    body: str
    start: int
    end: int


@dataclass(frozen=True)
class Array:
    """A static array: `start` is the index of the `=` before its values; -1 without values."""

    name: str
    dtype: str
    count: int
    align: int
    constant: bool
    start: int


def functions(text: str) -> dict[str, Function]:
    """Return the function definitions in TVM's layout, in order."""
    definitions: dict[str, Function] = {}
    at = 0
    while (match := _DEFINITION.search(text, at)) is not None:
        end = _END.search(text, match.end())
        at = end.end() if end else len(text)
        parameters = tuple(_parameter(p) for p in match[3].split(",") if p.strip() not in ("", "void"))
        body = text[match.end() : end.start() if end else len(text)]
        # Other patterns allow spaces in many places: long runs of white space would take long.
        body = _WIDE.sub(lambda run: "\n" if "\n" in run[0] else " ", body)
        definitions.setdefault(match[2], Function(match[2], match[1], parameters, body, match.start(), at))
    return definitions


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.match(text)
    return Parameter(match[1], match[2].count("*"), match[3]) if match else Parameter(text.strip(), 0, "")


def same_name(name: str, other: str) -> bool:
    """Return whether two names denote the same tensor: C code replaces other characters with `_`."""
    return re.sub(r"\W", "_", name) == re.sub(r"\W", "_", other)


def foreign_calls(text: str) -> list[str]:
    """Return the functions that a source calls without a definition or macro. No preprocessor runs."""
    own = set(_MACRO.findall(text))
    plain = _COMMENTS.sub(" ", text)
    for head in _HEAD.finditer(plain):
        opened, ended = plain.find("{", head.end(), head.end() + 20000), plain.find(";", head.end(), head.end() + 20000)
        if opened >= 0 and (ended < 0 or opened < ended):
            own.add(head[1])
    own |= _KEYWORDS
    return [c for c in dict.fromkeys(_CALL.findall(plain)) if c not in own and dtype_of_c(c) is None]


def arrays(text: str) -> Iterator[Array]:
    """Yield the static arrays of known element types at the start of lines."""
    for match in _ARRAY.finditer(text):
        dtype = dtype_of_c(match[2])
        if dtype is not None:
            before = text[max(0, match.start() - 100) : match.start()].rpartition("\n\n")[2]
            aligned = ALIGNED.search(match[3] or before)
            align = int(aligned[1]) if aligned else 1
            start = match.end() - 1 if match[6] == "=" else -1
            yield Array(match[4], dtype.name, int(match[5]), align, bool(match[1]), start)


def values(text: str, start: int, dtype: str, count: int, place: str) -> bytes:
    """Return the little-endian bytes of `{1, 2, …}` that begins after `start`; omitted values are 0, as in C."""
    opened = text.find("{", start)
    closed = text.find("}", opened)
    if opened < 0 or closed < 0:
        raise fault("missing end of an array's values", place, "`{…}`")
    body = text[opened + 1 : closed]
    numbers = _NUMBER.findall(body)
    code = DTYPES[dtype].struct_code
    separators = body.count(",") + (1 if body.rstrip()[-1:] not in ("", ",") else 0)
    if code is None or len(numbers) > count or len(numbers) != separators:
        raise fault(f"array of {count} {dtype} with {len(numbers)} valid values", place, "plain numbers")
    try:
        read = _real if DTYPES[dtype].kind == "float" else _whole
        return struct.pack(f"<{count}{code}", *map(read, numbers), *[0] * (count - len(numbers)))
    except (ValueError, OverflowError, struct.error) as error:
        raise fault(f"invalid value in an array of {dtype}: {error}", place, "plain numbers") from None


def _whole(text: str) -> int:
    return int(text.rstrip("uUlL"), 0)


def _real(text: str) -> float:
    low = text.lower()
    if "inf" in low:
        return float("-inf") if low.startswith("-") else float("inf")
    if "nan" in low:
        return float("nan")
    if "0x" in low:
        return float.fromhex(low.rstrip("l") if "p" not in low else low.rstrip("fl"))
    return float(low.rstrip("fl"))
