# SPDX-License-Identifier: Apache-2.0
"""Parser for the C code of TVM: functions with their bodies, packed arguments, and the values of constant arrays.

In TVM's code, definitions begin at the start of a line and end with the first `}` at the start of a line.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import field

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault
from opwest.frontends.mlf.library import DIMENSIONS
from opwest.model.types.dtypes import DTYPES, dtype_of_c, dtype_of_packed

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


_ENTRY = re.compile(
    r"\bvoid\s*\*\s*(\w+)\s*=\s*\(*\s*\(TVMValue\s*\*\)\s*args\s*\)\s*\[\s*\(?(\d{1,4})\)?\s*\]\s*\.\s*v_handle"
)
_FIELD = re.compile(
    r"\bvoid\s*\*\s*(\w+)\s*=\s*\(*\s*\(DLTensor\s*\*\)\s*(\w+)\s*\)\s*\[\s*\(?0\)?\s*\]\s*\.\s*(data|shape)\s*\)"
)
_CAST = re.compile(r"\(\s*(?:const\s+)?(\w+)\s*\*\s*\)\s*\(?(\w+)\b")
_DIMENSION = r"\(\(int64_t\s*\*\)\s*(\w+)\s*\)\s*\[\s*\(?(\d{1,2})\)?\s*\]"
_NUMBER_PATTERN = r"\(?(?:\(int\w+\)\s*)?(\d{1,12})\b"
# `if (!(16 == ((int32_t)((int64_t*)arg_p0_shape)[1])))`, in either order, with or without the conversion.
_CHECK = re.compile(
    rf"{_NUMBER_PATTERN}\)?\s*==\s*\(*(?:\(?int32_t\)\s*\(*)?{_DIMENSION}|{_DIMENSION}\)*\s*==\s*\(*{_NUMBER_PATTERN}"
)


@dataclass(frozen=True)
class Entry:
    """One entry of `args`: a DLTensor, or a bare pointer. `data` is the variable of its elements."""

    name: str
    tensor: bool
    data: str
    dtype: str | None = None
    """The element type of accesses in the body; None if there is none, or more than one."""
    shape: tuple[int, ...] | None = None
    """The shape that the body checks; None without a check."""


def is_packed(function: Function) -> bool:
    """Return whether a function has the signature of TVMBackendPackedCFunc."""
    return len(function.parameters) == 6 and function.parameters[0].name in ("args", "arg_values")


def packed_entries(function: Function) -> list[Entry]:
    """Return the entries in order; empty if one is missing."""
    names = {int(m[2]): m[1] for m in _ENTRY.finditer(function.body)}
    if sorted(names) != list(range(len(names))):
        return []
    read = set(re.findall(r"\(\(DLTensor\s*\*\)\s*(\w+)\s*\)", function.body))
    fields = {(m[2], m[3]): m[1] for m in _FIELD.finditer(function.body)}
    casts = _casts(function.body)
    shapes = _checked(function.body)
    entries = []
    for number in range(len(names)):
        name = names[number]
        data = fields.get((name, "data"), name)
        dtypes = casts.get(data, set())
        shape = shapes.get(fields.get((name, "shape"), ""))
        entries.append(Entry(name, name in read, data, next(iter(dtypes)) if len(dtypes) == 1 else None, shape))
    return entries


def _casts(body: str) -> Mapping[str, set[str]]:
    dtypes: dict[str, set[str]] = {}
    for match in _CAST.finditer(body):
        dtype = dtype_of_c(match[1])
        if dtype is not None:
            dtypes.setdefault(match[2], set()).add(dtype.name)
    return dtypes


def _checked(body: str) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes that a body compares in all dimensions, by the variable of the shape."""
    sizes: dict[str, dict[int, int]] = {}
    for match in _CHECK.finditer(body):
        name, at, size = (match[2], match[3], match[1]) if match[1] else (match[4], match[5], match[6])
        sizes.setdefault(name, {})[int(at)] = int(size)
    return {n: tuple(d[k] for k in range(len(d))) for n, d in sizes.items() if sorted(d) == list(range(len(d)))}


_MAX_LENGTH = 2000
"""The maximum length of a parsed statement."""
_INDEX = r"\s*\[\s*\(?(\d{1,4})\)?\s*\]\s*"
_PIECES = re.compile(r"[;{}]")
_ALIAS = re.compile(r"\s*void\s*\*\s*(\w+)\s*=\s*(\w+)\s*\Z")
_SHAPE = re.compile(rf"\s*\(*\(int64_t\s*\*\)\s*(\w+)\s*\){_INDEX}\)?\s*=\s*(.+)\Z")
_FIELD_OF_TENSOR = re.compile(
    rf"\s*\(*\(DLTensor\s*\*\)\s*(\w+)\s*\){_INDEX}\.\s*([a-z_.]+)\s*\)?\s*=\s*(.+)\Z", re.DOTALL
)
_SLOT = re.compile(rf"\s*\(*\(TVMValue\s*\*\)\s*(\w+)\s*\){_INDEX}\.\s*v_handle\s*\)?\s*=\s*(.+)\Z", re.DOTALL)
_ADDRESS = re.compile(r"\(*\s*\(DLTensor\s*\*\)\s*(\w+)\s*\)\s*\+\s*\(?(\d{1,4})\)*\s*\Z")
_SHAPE_AT = re.compile(rf"\(*\s*&\s*\(*\s*\(int64_t\s*\*\)\s*(\w+)\s*\){_INDEX}\)*\s*\Z")
_CONSTANT = re.compile(r"\(*\s*(?:\(\s*\w+\s*\)\s*)?\(*(\d{1,12})\)*\s*\Z")
_PACKED_CALL = re.compile(r"\b(\w+)\s*\(\s*(?:\(\s*TVMValue\s*\*\s*\)\s*)?(\w+)\s*,")


@dataclass(frozen=True)
class Passed:
    """One entry of a call: `data` is main's expression for the memory, `handle` for the entry itself."""

    data: str
    handle: str = ""
    """Set if main passes one of its own entries, or a bare pointer."""
    dtype: str | None = None
    shape: tuple[int, ...] | None = None


@dataclass
class _Stack:
    """Main's variables during the interpretation of its statements."""

    aliases: dict[str, str] = field(default_factory=dict)
    numbers: dict[tuple[str, int], int | None] = field(default_factory=dict)
    """Elements of arrays of shapes."""
    tensors: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)
    slots: dict[tuple[str, int], str] = field(default_factory=dict)

    def own(self, name: str) -> str:
        """Return the array that a variable points to."""
        return self.aliases.get(name, name)

    def passed(self, text: str) -> Passed:
        """Return the current content of an entry."""
        address = _ADDRESS.match(text)
        at = (self.own(address[1]), int(address[2])) if address else (self.own(text), 0)
        fields = self.tensors.get(at)
        if fields is None:
            return Passed("", text)
        return Passed(fields.get("data", ""), "", self._dtype(fields), self._shape(fields))

    def _dtype(self, fields: Mapping[str, str]) -> str | None:
        code, bits = _number(fields.get("dtype.code", "")), _number(fields.get("dtype.bits", ""))
        lanes = _number(fields.get("dtype.lanes", "1"))
        if code is None or bits is None or lanes != 1:
            return None
        dtype = dtype_of_packed(code, bits)
        return dtype.name if dtype else None

    def _shape(self, fields: Mapping[str, str]) -> tuple[int, ...] | None:
        rank, at = _number(fields.get("ndim", "")), _SHAPE_AT.match(fields.get("shape", ""))
        if rank is None or at is None or rank > DIMENSIONS:
            return None
        name, first = self.own(at[1]), int(at[2])
        sizes = [self.numbers.get((name, first + k)) for k in range(rank)]
        known = tuple(s for s in sizes if s)
        return known if len(known) == rank else None


def packed_calls(main: Function, counts: Mapping[str, int]) -> Iterator[tuple[str, list[Passed]]]:
    """Yield each call of a packed operator with its entries; `counts` has the number of entries of an operator.

    The call also contains the number of entries, but in some releases it includes the resource handle.
    """
    stack = _Stack()
    for piece in _PIECES.split(main.body):
        if len(piece) > _MAX_LENGTH:
            continue
        if (match := _ALIAS.match(piece)) is not None:
            stack.aliases[match[1]] = stack.own(match[2])
        elif (match := _SHAPE.match(piece)) is not None:
            stack.numbers[stack.own(match[1]), int(match[2])] = _number(match[3])
        elif (match := _FIELD_OF_TENSOR.match(piece)) is not None:
            stack.tensors.setdefault((stack.own(match[1]), int(match[2])), {})[match[3]] = match[4].strip()
        elif (match := _SLOT.match(piece)) is not None:
            stack.slots[stack.own(match[1]), int(match[2])] = match[3].strip()
        else:
            for match in _PACKED_CALL.finditer(piece):
                if match[1] in counts:
                    array = stack.own(match[2])
                    texts = [stack.slots.get((array, number), "") for number in range(counts[match[1]])]
                    yield match[1], [stack.passed(text) for text in texts]


def _number(text: str) -> int | None:
    match = _CONSTANT.match(text)
    return int(match[1]) if match else None
