# SPDX-License-Identifier: Apache-2.0
"""C functions, generated from the description, that write every field of every record; and a reader of their output."""

import re
from collections.abc import Iterator
from typing import Any

from opwest.render.tables import layout
from opwest.render.tables.types import Field, Function, Nested, Pointer, Scalar, String, Struct

ROOTS = (layout.MODEL, layout.REGISTRY, layout.POINT, layout.DETAILS)


def reachable(struct: Struct) -> Iterator[Struct]:
    """Yield the structures that a record refers to, each after those that it refers to itself."""
    for field in struct.fields:
        if isinstance(field.type, Pointer) and isinstance(field.type.to, Struct):
            yield from reachable(field.type.to)
        if isinstance(field.type, Nested):
            yield from reachable(field.type.struct)
    yield struct


def show_header() -> str:
    """Return show.h: a function `show_<structure>` for every structure that the roots refer to."""
    structs = {struct.name: struct for root in ROOTS for struct in reachable(root)}
    lines = ["#include <opwest/accelerator.h>"]
    lines += [f"#include <{header}>" for header in sorted({struct.header for struct in structs.values()})]
    lines += ['#include "writing.h"']
    for struct in structs.values():
        lines += [f"static inline void show_{struct.name}(const {struct.c_type} *it)", "{", 'text("{");']
        for field in struct.fields:
            lines += [f'text(" .{field.name}");', *_show(field)]
        lines += ['text(" }\\n");', "}"]
    return "\n".join([*lines, ""])


def _show(field: Field) -> list[str]:
    value, type_ = f"it->{field.name}", field.type
    match type_:
        case String():
            return [f"quoted({value});"]
        case Scalar(dtype):
            return [_number(value, type_)]
        case Function():
            return [f'text({value} == NULL ? " NULL" : " set");']
        case Nested(to):
            return [f"show_{to.name}(&{value});"]
        case Pointer("void"):  # the content is written by the programs
            return [f'text({value} == NULL ? " NULL" : " set");']
        case Pointer(Struct() as to, None, is_unique=False):
            return [f'if ({value} == NULL) {{ text(" NULL"); }} else {{ show_{to.name}({value}); }}']
        case Pointer(Struct() as to, None, is_unique=True):
            return [f"if (identity(&of_model, {value})) {{ show_{to.name}({value}); }}"]
        case Pointer(Struct() as to, str() as count):
            known = f"(void)identity(&of_model, &{value}[i]);" if type_.is_unique else ""
            return _loop(value, count, f"{known} show_{to.name}(&{value}[i]);")
        case Pointer(Scalar(dtype) as to, str() as count):
            known = [f"(void)identity(&of_model, {value});"] if type_.is_unique else []
            if dtype is layout.U8.dtype:
                return [*known, f"bytes({value}, it->{count});"]
            return [*known, *_loop(value, count, _number(f"{value}[i]", to))]
    raise AssertionError(f"a field of an unsupported type: {field}")


def _number(value: str, type_: Scalar) -> str:
    return f"bytes(&{value}, sizeof({value}));" if type_.dtype.is_float else f"number((int64_t){value});"


def _loop(value: str, count: str, body: str) -> list[str]:
    return [
        f'text({value} == NULL ? " NULL [" : " [");',
        f"for (uint32_t i = 0; i < it->{count}; i++) {{ {body} }}",
        'text(" ]");',
    ]


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^\s\[\]{}]+')


def read_records(text: str) -> list[dict[str, Any]]:
    """Return the records of a program's output: fields by name, each a list of texts, numbers, lists and records."""
    found = []
    for start in re.finditer(r"^\{ ", text, re.MULTILINE):
        tokens = (match[0] for match in _TOKEN.finditer(text, start.end()))
        found.append(_record(tokens))
    return found


def _record(tokens: Iterator[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    name = ""
    for token in tokens:
        if token == "}":
            return fields
        if token.startswith("."):
            name = token[1:]
            fields[name] = []
        else:
            fields[name].append(_item(token, tokens))
    raise AssertionError("a record without an end")


def _item(token: str, tokens: Iterator[str]) -> Any:
    if token == "{":
        return _record(tokens)
    if token == "[":
        items = []
        for inner in tokens:
            if inner == "]":
                return items
            items.append(_item(inner, tokens))
        raise AssertionError("a list without an end")
    if token.startswith('"'):
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    return int(token) if re.fullmatch(r"-?\d+", token) else token
