# SPDX-License-Identifier: Apache-2.0
"""The sandbox of user templates: they can access only prepared rows, with limits on time and memory.

All limits are numbers of passes and elements, so that a template has the same result on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import jinja2
import jinja2.sandbox
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.visitor import NodeTransformer

MAX_PASSES: Final = 1_000_000
"""Passes of loops, and calls of macros, blocks and included templates, of one file."""
_MAX_ELEMENTS: Final = 1 << 20
_MAX_BITS: Final = 1 << 14
_WIDTH = re.compile(r"\d{5,}|\*")
_INNER_FIELD = re.compile(r":[^{}]*\{")
_PADDING = frozenset("ljust rjust center zfill expandtabs".split())
_TEXT_FILTERS = (
    "string e escape forceescape safe tojson pprint format urlize upper lower title capitalize trim striptags "
    "wordcount indent center replace truncate wordwrap xmlattr urlencode"
).split()
_SIZED_FILTERS = ("center", "indent", "batch", "slice", "truncate", "wordwrap", "round")


class Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Jinja's own sandbox, with limits on time and memory."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, finalize=_shown)
        self._passes = 0
        for name in _TEXT_FILTERS:
            self.filters[name] = _of_shown(self.filters[name])
        for name in _SIZED_FILTERS:
            self.filters[name] = _sized(self.filters[name])
        self.filters["format"] = _formatted(self.filters["format"])
        self.filters["join"] = _joined(self.filters["join"])
        self.filters["replace"] = _replaced(self.filters["replace"])

    def start(self) -> None:
        """Reset the counts for a new file."""
        self._passes = 0

    def count_pass(self) -> str:
        """Count a pass; templates are compiled with a call of this in every body. Raises SecurityError."""
        self._passes += 1
        if self._passes > MAX_PASSES:
            raise SecurityError(f"more than {MAX_PASSES} passes of loops and calls of macros")
        return ""

    def concatenate(self, *parts: Any) -> str:
        """Return the result of `~`."""
        texts = [str(_shown(part)) for part in parts]
        _check_elements(sum(map(len, texts)))
        return "".join(texts)

    def _generate(self, source: nodes.Template, *arguments: Any, **options: Any) -> str:
        return super()._generate(_Counting().visit(source), *arguments, **options)

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        """Calculate, with limits on the size of the result."""
        if operator == "%" and isinstance(left, str | bytes):
            _check_width(left)
            _shown(right)
        elif isinstance(left, int) and isinstance(right, int):
            grown = {"*": left.bit_length() + right.bit_length(), "**": left.bit_length() * abs(right)}
            if grown.get(operator, 0) > _MAX_BITS:
                raise SecurityError(f"a number of more than {_MAX_BITS} bits")
        elif operator == "+":
            _check_elements(_length(left) + _length(right))
        elif operator == "*":
            for repeated, count in ((left, right), (right, left)):
                if isinstance(count, int):
                    _check_elements(_length(repeated) * count)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: jinja2.runtime.Context, __obj: Any, *arguments: Any, **named: Any) -> Any:  # noqa: N805
        """Call a function for a template, with limits on string methods with large results."""
        method = getattr(__obj, "__wrapped__", __obj)  # Jinja wraps str.format
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(owner, str):
            if name in _PADDING:
                _check_numbers(arguments, named)
            elif name in ("format", "format_map"):
                _check_width(owner)
                _shown([*arguments, *named.values()])
                if _INNER_FIELD.search(owner):
                    raise SecurityError("a width that is a field itself")
            elif name == "replace":
                _check_replacement(owner, *arguments[:2])
            elif name == "join" and arguments:
                arguments = (_checked_list(owner, arguments[0]), *arguments[1:])
        return super().call(__context, __obj, *arguments, **named)


class _Counting(NodeTransformer):
    """Inserts a call of `count_pass` into every body that can run more than once, and bounds `~`."""

    def _counted(self, node: Any) -> Any:
        node = self.generic_visit(node)
        call = nodes.Call(nodes.EnvironmentAttribute("count_pass"), [], [], None, None)
        node.body.insert(0, nodes.ExprStmt(call, lineno=node.lineno).set_lineno(node.lineno))
        return node

    visit_For = visit_Macro = visit_CallBlock = visit_Block = visit_Template = _counted  # noqa: N815

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:  # noqa: N802
        self.generic_visit(node)
        return nodes.Call(nodes.EnvironmentAttribute("concatenate"), node.nodes, [], None, None, lineno=node.lineno)


def _shown(value: Any) -> Any:
    """Check and return a value before it becomes text; nested references to one list make its text large."""
    pending, count = [value], 0
    while pending:
        one = pending.pop()
        if isinstance(one, list | tuple | dict):
            count += len(one)
            _check_elements(count)
            pending.extend(one.values() if isinstance(one, dict) else one)
        elif isinstance(one, str) and pending:
            count += len(one)
    _check_elements(count)
    return value


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple) else 0


def _check_elements(count: int) -> None:
    if count > _MAX_ELEMENTS:
        raise SecurityError(f"a result of more than {_MAX_ELEMENTS} elements")


def _check_width(text: str | bytes) -> None:
    if _WIDTH.search(text if isinstance(text, str) else text.decode("latin-1")):
        raise SecurityError("a field of more than 9999 characters, or of a width that is an argument")


def _check_numbers(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    for value in (*arguments, *named.values()):
        if isinstance(value, int):
            _check_elements(abs(value))


def _check_replacement(text: str, old: Any = "", new: Any = "") -> None:
    _check_elements((text.count(str(old)) if len(text) else 1) * len(str(new)))


def _checked_list(separator: str, items: Any) -> list[Any]:
    listed = list(items)
    _shown(listed)
    _check_elements(sum(len(str(item)) for item in listed) + len(separator) * len(listed))
    return listed


def _of_shown(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that checks the values that it converts to text."""

    def bounded(*arguments: Any, **named: Any) -> Any:
        for value in (*arguments, *named.values()):
            _shown(value)
        return original(*arguments, **named)

    return _as(original, bounded)


def _sized(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter with bounded numbers; arguments from Jinja are unchanged."""

    def bounded(*arguments: Any, **named: Any) -> Any:
        _check_numbers(arguments, named)
        return original(*arguments, **named)

    return _as(original, bounded)


def _formatted(original: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(value: Any, *arguments: Any, **named: Any) -> Any:
        _check_width(str(value))
        return original(value, *arguments, **named)

    return _as(original, bounded)


def _joined(original: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(context: Any, value: Any, d: str = "", attribute: Any = None) -> Any:
        return original(context, _checked_list(str(d), value), d, attribute)

    return _as(original, bounded)


def _replaced(original: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(context: Any, s: Any, old: Any, new: Any, count: int | None = None) -> Any:
        _check_replacement(str(s), old, new)
        return original(context, s, old, new, count)

    return _as(original, bounded)


def _as(original: Callable[..., Any], bounded: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a filter as Jinja marks those that take the context or the environment first."""
    marked = getattr(original, "jinja_pass_arg", None)
    if marked is not None:
        bounded.jinja_pass_arg = marked  # type: ignore[attr-defined]
    return bounded
