# SPDX-License-Identifier: Apache-2.0
"""Signatures of functions that a generator of C wrote, with what its text contains beside the types of C.

Sources: CasADi's documentation, "Using the generated code" (`f_work`, `f_sparsity_in`, `f_name_in`) and "Sparsity
class" (compressed columns; a dense pattern is its dimensions and 1); Faust's C back end, `-lang c`; the comments of
Exo's procedures; `predict` of TL2cgen; the names of tinygrad's arguments, `data0_12`: number and elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from opwest.base.frozen_dataclass import dataclass
from opwest.drafting.signatures import C_ORIGIN, Direction, Parameter, Signature
from opwest.model.types.c_names import fault_of_name
from opwest.model.types.dtypes import DTYPES, dtype_of_c
from opwest.objects.compilers import CASADI_SPARSITY, FAUST_COMPUTE
from opwest.objects.facts import CSource

_PATTERN = re.compile(r"static const casadi_int (casadi_s\d+)\[\d+\] =\s*\{([\d,\s]*)\}")
_MEMBER = re.compile(r"(int|float|double|FAUSTFLOAT)\s+\w+((?:\[\d{1,9}\])*)")
_EXO_SHAPE = re.compile(r"//\s+(\w+) : \w+\[(\d{1,9}(?:, \d{1,9})*)\]")
_TINYGRAD = re.compile(r"data(\d{1,9})_(\d{1,9})")
_MAX_ENTRIES = 4096
_NEEDS_HEADERS = "the source needs Faust's headers: generate it with -light"
_TREES = dict.fromkeys(("get_num_class", "postprocess"), "a part of TL2cgen's model") | {
    "predict": "TL2cgen's model adds to the result: write a C function that fills the array of `union Entry`, sets the "
    "result to 0 and calls it, and draft that function"
}
"""Why functions of TL2cgen are not operators."""


def completed(source: CSource, signatures: dict[str, Signature]) -> dict[str, Signature]:
    """Return the signatures of a C source, completed for functions of the generators."""
    text = source.text.decode("utf-8", "replace")
    known = dict(signatures)
    trees = "union Entry* data, int pred_margin" in text
    for symbol, signature in signatures.items():
        if f"{symbol}{CASADI_SPARSITY}" in signatures:
            known[symbol] = _casadi(symbol, text) or signature
        elif trees and symbol in _TREES:
            known[symbol] = replace(signature, unfit=_TREES[symbol])
        elif signature.unfit:
            continue
        elif all(_TINYGRAD.fullmatch(parameter.name) for parameter in signature.parameters):
            known[symbol] = _tinygrad(text, signature)
        elif symbol.startswith(FAUST_COMPUTE) and "MetaGlue" in text and "CInterface.h" not in text:
            known[symbol] = replace(signature, unfit=_NEEDS_HEADERS)
        elif symbol.startswith(FAUST_COMPUTE):
            known[symbol] = _faust(symbol.removeprefix(FAUST_COMPUTE), text, signature)
        elif any(parameter.name == "ctxt" for parameter in signature.parameters):
            known[symbol] = _exo(symbol, text, signature)
    return known


def _defined(text: str, macro: str) -> str | None:
    """Return the dtype of the first definition of a macro."""
    match = re.search(rf"^#define {macro} (.+?)\s*$", text, re.MULTILINE)
    if match is None:
        return None
    written = match[1].removesuffix(" int")
    known = DTYPES["int64"] if written == "long long" else dtype_of_c(written)
    return known.name if known else None


def _body(text: str, function: str) -> str:
    """Return the body of a function that CasADi or Faust wrote; "" if it has none."""
    match = re.search(rf"\b{re.escape(function)}\([^)]*\)\s*\{{(.*?)\n?\}}", text, re.DOTALL)
    return match[1] if match else ""


# --- CasADi


@dataclass(frozen=True)
class _Pattern:
    """A sparsity pattern: its dimensions and the number of elements that are stored."""

    rows: int
    columns: int
    stored: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the elements in memory, which are stored by columns."""
        if self.stored != self.rows * self.columns:
            return (self.stored,)
        return (self.columns, self.rows) if min(self.rows, self.columns) > 1 else (self.stored,)

    @property
    def remarks(self) -> tuple[str, ...]:
        """A comment on the order of the elements."""
        if self.stored != self.rows * self.columns:
            return (f"the nonzeros of a {self.rows}x{self.columns} matrix, by columns",)
        return (f"a {self.rows}x{self.columns} matrix, by columns",) if len(self.shape) > 1 else ()


def _pattern(numbers: list[int]) -> _Pattern | None:
    if len(numbers) < 3:
        return None
    rows, columns = numbers[:2]
    if len(numbers) == 3 and numbers[2] == 1:
        return _Pattern(rows, columns, rows * columns)
    starts = numbers[2 : 3 + columns]
    return _Pattern(rows, columns, starts[-1]) if len(starts) == columns + 1 else None


def _casadi(symbol: str, text: str) -> Signature | None:
    """Return the signature of a function of CasADi; None if the source has another form."""
    real, integer = _defined(text, "casadi_real"), _defined(text, "casadi_int")
    sizes = dict(re.findall(r"\*(sz_\w+) = (\d{1,9});", _body(text, f"{symbol}_work")))
    patterns = {name: _pattern([int(n) for n in re.findall(r"\d{1,9}", body)]) for name, body in _PATTERN.findall(text)}
    if real is None or integer is None or sizes.keys() != {"sz_arg", "sz_res", "sz_iw", "sz_w"}:
        return None
    parameters: list[Parameter] = []
    taken: set[str] = set()
    for end, name in (("in", "arg"), ("out", "res")):
        # The last `return` is that of `default`.
        listed = re.findall(r"return (\w+);", _body(text, f"{symbol}_sparsity_{end}"))[:-1]
        names = re.findall(r'return "(\w+)";', _body(text, f"{symbol}_name_{end}"))
        if len(names) != len(listed) or not all(patterns.get(one) for one in listed):
            return None
        for number, (word, one) in enumerate(zip(names, listed, strict=True)):
            free = next(
                w for w in (word, f"{word}_{end}", f"{name}{number}", f"{name}_{number}_") if _is_free(w, taken)
            )
            taken.add(free)
            pattern = patterns[one]
            assert pattern is not None
            parameters.append(_casadi_tensor(free, real, pattern, name, is_out=end == "out"))
        more = int(sizes[f"sz_{name}"]) - len(listed)
        if not 0 <= more <= _MAX_ENTRIES:
            return None
        if more or not listed:
            parameters.append(_nulls(f"{name}_more", real, name, max(more, 1), "for nested calls" if more else ""))
    parameters += [_workspace("iw", integer, int(sizes["sz_iw"])), _workspace("w", real, int(sizes["sz_w"]))]
    parameters.append(Parameter("mem", "scalar", "int32", value="0"))
    return Signature(C_ORIGIN, tuple(parameters))


def _is_free(name: str, taken: set[str]) -> bool:
    return name not in taken and name not in ("iw", "w", "mem") and fault_of_name(name) is None


def _casadi_tensor(name: str, dtype: str, pattern: _Pattern, table: str, *, is_out: bool) -> Parameter:
    if pattern.stored == 0:
        return _nulls(name, dtype, table, 1, "it has no elements")
    direction: Direction = "out" if is_out else "in"
    return Parameter(name, "tensor", dtype, pattern.shape, direction=direction, remarks=pattern.remarks, table=table)


def _nulls(name: str, dtype: str, table: str | None, many: int, remark: str) -> Parameter:
    remarks = (remark,) if remark else ()
    return Parameter(name, "tensor", dtype, None, "unknown", "scratch", nulls=many, table=table, remarks=remarks)


def _workspace(name: str, dtype: str, size: int) -> Parameter:
    return Parameter(name, "tensor", dtype, (size,), "both", "scratch") if size else _nulls(name, dtype, None, 1, "")


# --- Exo


def _exo(symbol: str, text: str, signature: Signature) -> Signature:
    """Return the signature of a procedure with the constant shapes in the comment before it."""
    comment = re.search(rf"// {re.escape(symbol)}\(\n((?://.*\n)*)// \)", text)
    lines = comment[1] if comment else ""
    shapes = {name: tuple(map(int, numbers.split(","))) for name, numbers in _EXO_SHAPE.findall(lines)}
    parameters = tuple(_exo_parameter(parameter, shapes) for parameter in signature.parameters)
    return replace(signature, parameters=parameters)


def _exo_parameter(parameter: Parameter, shapes: dict[str, tuple[int, ...]]) -> Parameter:
    if parameter.role == "scalar" and parameter.dtype is None:
        why = "a size, whose type depends on the target: remove it with `partial_eval` in Exo"
        return replace(parameter, remarks=(*parameter.remarks, why))
    return replace(parameter, shape=shapes.get(parameter.name, parameter.shape))


# --- tinygrad


def _tinygrad(text: str, signature: Signature) -> Signature:
    """Return the signature of a kernel, whose names contain the elements; the first argument is the result."""
    if "ext_vector_type" in text:
        why = "vectors of tinygrad, which GCC cannot compile: generate with NOOPT=1, or compile it with clang -g"
        return replace(signature, unfit=why)
    parameters = []
    for parameter in signature.parameters:
        number, elements = parameter.name.removeprefix("data").split("_")
        direction: Direction = "out" if number == "0" else "in"
        remarks = (f"guessed: {direction}",)
        parameters.append(replace(parameter, shape=(int(elements),), direction=direction, remarks=remarks))
    return replace(signature, parameters=tuple(parameters))


# --- Faust


def _faust(name: str, text: str, signature: Signature) -> Signature:
    """Return the signature of `compute` with an argument for each channel, and the size of the structure."""
    dtype = _defined(text, "FAUSTFLOAT")
    parameters: list[Parameter] = []
    tables = iter(("inputs", "outputs"))
    for parameter in signature.parameters:
        if parameter.struct == name:
            size = _structure(name, text, dtype)
            if size is not None:
                parameter = replace(parameter, shape=(size[0],), align=size[1], remarks=())
            initial = f"the initial content is that of instanceInit{name}(): `initial: {{file: ...}}` of the state"
            parameters.append(replace(parameter, remarks=(*parameter.remarks, initial)))
        elif parameter.table is not None:
            parameters += _channels(replace(parameter, table=next(tables, parameter.table)), name, text, dtype)
        else:
            parameters.append(parameter)
    return replace(signature, parameters=tuple(parameters))


def _channels(parameter: Parameter, name: str, text: str, dtype: str | None) -> Iterator[Parameter]:
    """Yield the arguments of one table: inputs or outputs."""
    is_out = parameter.table == "outputs"
    count = re.search(r"return (\d{1,9});", _body(text, f"getNum{'Outputs' if is_out else 'Inputs'}{name}"))
    if count is None or dtype is None or int(count[1]) > _MAX_ENTRIES:
        yield parameter
        return
    word = "output" if is_out else "input"
    direction: Direction = "out" if is_out else "in"
    for number in range(int(count[1])):
        remarks = ("shape: [COUNT]",)
        yield Parameter(f"{word}{number}", "tensor", dtype, direction=direction, remarks=remarks, table=parameter.table)
    if count[1] == "0":
        yield _nulls(f"{word}s_none", dtype, parameter.table, 1, f"no {word}s")


def _structure(name: str, text: str, dtype: str | None) -> tuple[int, int] | None:
    """Return size and alignment of Faust's structure; None if it has members of other types."""
    match = re.search(rf"typedef struct \{{([^}}]*)\}} {name};", text)
    if match is None or dtype is None:
        return None
    at, largest = 0, 1
    for member in filter(None, (part.strip() for part in match[1].split(";"))):
        seen = _MEMBER.fullmatch(member)
        if seen is None:
            return None
        kind = {"int": "int32", "float": "float32", "double": "float64"}.get(seen[1], dtype)
        item = DTYPES[kind].size
        many = 1
        for extent in re.findall(r"\d+", seen[2]):
            many *= int(extent)
        at = -(-at // item) * item + item * many
        largest = max(largest, item)
    return -(-at // largest) * largest, largest
