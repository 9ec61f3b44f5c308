# SPDX-License-Identifier: Apache-2.0
"""The text of manifests: the only module that spells their YAML. `opwest init` and `opwest import` choose the values.

Values arrive as text of YAML: `scalar` quotes names, marks are used as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

WIDTH: Final = 118
"""Columns of a line."""
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*\Z")
_RESERVED: Final = frozenset("null true false Null True False NULL TRUE FALSE".split())

Keys = Mapping[str, str | None]
"""The keys of a mapping with their values; keys without a value are left out."""


def document(*sections: Iterable[str]) -> str:
    """Return sections of lines as a text: a blank line between them, empty ones left out."""
    texts = ["".join(f"{line}\n" for line in section) for section in sections]
    return "\n".join(text for text in texts if text)


def scalar(text: str) -> str:
    """Return a string in the form that YAML reads as the same string."""
    return text if _PLAIN.match(text) and text not in _RESERVED else json.dumps(text, ensure_ascii=False)


_scalar = scalar


def flow_list(items: Iterable[str]) -> str:
    """Return a list on one line."""
    return f"[{', '.join(items)}]"


def flow_map(keys: Keys) -> str:
    """Return a mapping on one line."""
    return f"{{{', '.join(f'{key}: {value}' for key, value in keys.items() if value is not None)}}}"


def value(data: Any) -> str:
    """Return any value of a manifest on one line."""
    if isinstance(data, Mapping):
        return flow_map({_scalar(str(name)): value(item) for name, item in data.items()})
    if isinstance(data, (list, tuple)):
        return flow_list(map(value, data))
    return _scalar(data) if isinstance(data, str) else json.dumps(data)


def shape_of(shape: Sequence[int]) -> str:
    """Return a shape."""
    return flow_list(map(str, shape))


def comment(text: str, indent: str = "", hanging: str = "") -> Iterator[str]:
    """Yield a comment, folded at WIDTH; `hanging` is the indentation of continuation lines."""
    line, is_empty = f"{indent}#", True
    for word in _printable(text).split():
        if len(line) + 1 + len(word) > WIDTH and not is_empty:
            yield line
            line = f"{indent}#{hanging}"
        line += f" {word}"
        is_empty = False
    yield line


def remark(*remarks: str) -> str:
    """Return a comment for the end of a line, empty without remarks."""
    plain = [_printable(text) for text in remarks if text]
    return f"  # {'; '.join(plain)}" if plain else ""


def remarked(line: str, *remarks: str) -> Iterator[str]:
    """Yield a line with a comment at its end, or before it if the result is longer than WIDTH."""
    end = remark(*remarks)
    if len(line) + len(end) <= WIDTH:
        yield line + end
        return
    yield from comment("; ".join(text for text in remarks if text), line[: len(line) - len(line.lstrip())], "  ")
    yield line


def object_entry(files: Sequence[str], target: str | None = None) -> Iterator[str]:
    """Yield an entry of `objects`, which further keys can follow, indented by four spaces."""
    first = "  - "
    if target is not None:
        yield f"{first}target: {scalar(target)}"
        first = "    "
    listed = [scalar(name) for name in files]
    if len(listed) == 1 or sum(map(len, listed)) + 2 * len(listed) < WIDTH - 14:
        yield f"{first}files: {flow_list(listed)}"
    else:
        yield f"{first}files:"
        yield from (f"      - {name}" for name in listed)


def key(name: str, value: str | None, *remarks: str) -> Iterator[str]:
    """Yield a key of an operator or of an entry of `objects`, if it has a value."""
    if value is not None:
        yield from remarked(f"    {name}: {value}", *remarks)


def operator(name: str, keys: Iterable[str], arguments: Iterable[Iterable[str]] | None, end: str = "") -> Iterator[str]:
    """Yield an operator: the lines of its keys, then those of its arguments if they are known.

    `end` follows the name of the operator.
    """
    yield f"  {scalar(name)}:{end}"
    yield from keys
    if arguments is not None:
        entries = [line for lines in arguments for line in lines]
        yield "    args:" if entries else "    args: []"
        yield from entries


def argument(
    name: str,
    dtype: str,
    shape: str | None,
    *,
    scalar: bool | None = None,
    direction: str = "in",
    align: int | None = None,
    pointer: bool = False,
    in_place: Sequence[str] = (),
    phases: tuple[int, int] | None = None,
    pitch: int = 0,
    struct: str | None = None,
    table: str | None = None,
    nulls: int = 0,
    remarks: Iterable[str] = (),
) -> Iterator[str]:
    """Yield an argument of an operator; without a shape it is a scalar, unless `scalar` is False."""
    by_value = shape is None if scalar is None else scalar
    keys = {
        "name": _scalar(name),
        "dtype": dtype,
        "scalar": "true" if by_value and not nulls else None,
        "shape": shape if not nulls else None,
        "direction": direction if direction != "in" and not by_value and not nulls else None,
        "pitch": str(pitch) if pitch else None,
        "align": str(align) if align else None,
        "pointer": "true" if pointer else None,
        "in_place": flow_list(map(_scalar, in_place)) if in_place else None,
        "phases": flow_list(map(str, phases)) if phases else None,
        "struct": _scalar(struct) if struct else None,
        "nulls": str(nulls) if nulls else None,
        "table": _scalar(table) if table else None,
    }
    yield from remarked(f"      - {flow_map(keys)}", *remarks)


def interface(role: str, tensors: Mapping[str, Keys]) -> Iterator[str]:
    """Yield `inputs` or `outputs`: the keys of every tensor, by name."""
    yield f"  {role}:" if tensors else f"  {role}: {{}}"
    yield from (f"    {scalar(name)}: {flow_map(keys)}" for name, keys in tensors.items())


def variant(name: str, targets: Sequence[str], sections: Iterable[str]) -> Iterator[str]:
    """Yield an entry of `variants`; `sections` are the lines of its keys as at the top level of a manifest."""
    yield f"  {scalar(name)}:"
    yield f"    targets: {flow_list(map(_scalar, targets))}"
    yield from (f"    {line}" for line in sections)


def step(
    call: str,
    args: Iterable[str | int | float | bool],
    device: str | None = None,
    end: str = "",
    program: str | None = None,
) -> Iterator[str]:
    """Yield a step: on one line if it fits in WIDTH; `args` are names and numbers, `end` follows it."""
    keys = {"call": scalar(call), "device": device, "program": program, "args": flow_list(map(value, args))}
    line = f"    - {flow_map(keys)}{end}"
    if len(line) <= WIDTH:
        yield line
        return
    given = [f"{key}: {value}" for key, value in keys.items() if value is not None]
    yield f"    - {given[0]}{end}"
    yield from (f"      {key_and_value}" for key_and_value in given[1:])


def _printable(text: str) -> str:
    """Return a text that cannot end a comment."""
    return "".join(c if c.isprintable() else "?" for c in text)


def externals(symbols: Mapping[str, tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield the external symbols: their origin, and the Kconfig symbols that enable each."""
    if symbols:
        yield "externals:"
    for symbol, (origin, options) in symbols.items():
        given = options[0] if len(options) == 1 else flow_list(options) if options else None
        yield f"  - {flow_map({'symbol': scalar(symbol), 'from': scalar(origin), 'kconfig': given})}"


def kconfig(options: Mapping[str, str]) -> Iterator[str]:
    """Yield the options of the application."""
    if options:
        yield "application:"
        yield "  kconfig:"
    yield from (f"    {symbol}: {value}" for symbol, value in sorted(options.items()))
