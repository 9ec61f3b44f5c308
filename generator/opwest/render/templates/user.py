# SPDX-License-Identifier: Apache-2.0
"""Templates of the user, which replace files of project_template or add files.

They are rendered in a sandbox, since a repository can contain foreign templates: they can access only prepared
rows. Every error has the template's file and line.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import jinja2
import jinja2.sandbox
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.visitor import NodeTransformer

from opwest.base.diagnostics import Diagnostics, beginning, nearest
from opwest.render.templates.files import UserTemplates, is_extra, is_of_commands, known_templates

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
            self.filters[name] = _bounded(self.filters[name], _shown)
        for name in _SIZED_FILTERS:
            self.filters[name] = _bounded(self.filters[name], _check_number)
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
                for value in (*arguments, *named.values()):
                    _check_number(value)
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
        item = pending.pop()
        if isinstance(item, list | tuple | dict):
            count += len(item)
            _check_elements(count)
            pending.extend(item.values() if isinstance(item, dict) else item)
        elif isinstance(item, str) and pending:
            count += len(item)
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


def _check_number(value: Any) -> None:
    if isinstance(value, int):
        _check_elements(abs(value))


def _check_replacement(text: str, old: Any = "", new: Any = "") -> None:
    _check_elements((text.count(str(old)) if len(text) else 1) * len(str(new)))


def _checked_list(separator: str, items: Any) -> list[Any]:
    listed = list(items)
    _shown(listed)
    _check_elements(sum(len(str(item)) for item in listed) + len(separator) * len(listed))
    return listed


def _bounded(original: Callable[..., Any], check: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a filter that first calls `check` with each of its arguments."""

    def bounded(*arguments: Any, **named: Any) -> Any:
        for value in (*arguments, *named.values()):
            check(value)
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


MAX_OUTPUT: Final = 64 << 20
_UNDEFINED = re.compile(r"'(\w+)' is undefined")


class UserRenderer:
    """The renderer of the templates of one directory; it reports errors, and the result is then an empty file."""

    def __init__(self, user: UserTemplates, own: Mapping[str, str], faults: Diagnostics) -> None:
        self.user = user
        self.faults = faults
        self._own = own
        self.known = known_templates(own)
        texts = user.templates
        self._environment = Sandbox(
            loader=jinja2.ChoiceLoader(
                [
                    jinja2.FunctionLoader(
                        lambda name: (texts[name], str(user.place(name)), lambda: True) if name in texts else None
                    ),
                    jinja2.PrefixLoader({"opwest": jinja2.DictLoader(own)}),
                    jinja2.DictLoader(own),
                ]
            ),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
        )
        for table, name in ((self._environment.globals, "lipsum"), (self._environment.filters, "random")):
            table.pop(name, None)  # the same inputs give the same bytes

    def has(self, name: str) -> bool:
        """Whether the user's directory has a template of this path."""
        return name in self.user.templates

    def check(self) -> None:
        """Report templates without a counterpart, and all syntax errors, also in unused templates."""
        for name, text in self.user.templates.items():
            if name in self._own and is_of_commands(name):
                if text != self._own[name]:  # a copy of the whole project_template contains it unchanged
                    self.faults.warning(
                        f"template {name!r} has no effect: it is not a file of projects",
                        self.user.place(name),
                        hint="remove it",
                    )
                continue
            partial = PurePosixPath(name).name.startswith("_")
            if not partial and not is_extra(name) and name not in self.known:
                self.faults.error(
                    f"unknown template {name!r}",
                    self.user.place(name),
                    expected="the path of a file of project_template, extra/… for an additional file, or a name "
                    "with a leading _ for an included template",
                    hint=nearest(name, self.known),
                )
            try:
                self._environment.parse(text, name, str(self.user.place(name)))
            except jinja2.TemplateSyntaxError as error:
                self.faults.error(
                    f"invalid template: {beginning(error.message or '')}", self.user.place(name, error.lineno)
                )
            except RecursionError:
                self.faults.error("the template is nested too deeply", self.user.place(name))

    def render(self, name: str, rows: Mapping[str, Any]) -> bytes:
        """Return the file rendered from a template and prepared rows."""
        try:
            self._environment.start()
            parts, size = [], 0
            for part in self._environment.get_template(name).generate(**rows):
                parts.append(part.encode("utf-8"))
                size += len(parts[-1])
                if size > MAX_OUTPUT:
                    raise SecurityError(f"the file would have more than {MAX_OUTPUT >> 20} MiB")
            return b"".join(parts)
        except jinja2.TemplateSyntaxError as error:
            place = error.name if error.name is not None and self.has(error.name) else name
            self.faults.error(
                f"invalid template: {beginning(error.message or '')}", self.user.place(place, error.lineno)
            )
        except Exception as error:  # any fault of a template; errors of the machine propagate
            if isinstance(error, OSError) and not isinstance(error, jinja2.TemplateError):
                raise
            self._report(name, error, rows)
        return b""

    def _report(self, name: str, error: Exception, rows: Mapping[str, Any]) -> None:
        hint = None
        if isinstance(error, jinja2.TemplateNotFound):
            message = f"unknown template {error.message!r} in include"
            hint = nearest(error.message or "", [*self.user.templates, *(f"opwest/{known}" for known in self.known)])
        elif isinstance(error, jinja2.UndefinedError):
            message = str(error)
            if undefined := _UNDEFINED.fullmatch(message):
                hint = nearest(undefined[1], rows)
        elif isinstance(error, SecurityError):
            message = f"not permitted in templates: {error}"
        elif isinstance(error, RecursionError):
            message = "the template includes itself, or is nested too deeply"
        else:
            message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        place, line = self._place(error) or (name, 0)
        self.faults.error(beginning(message), self.user.place(place, line), hint=hint)

    def _place(self, error: Exception) -> tuple[str, int] | None:
        """Return the innermost line of the user's templates in the traceback of an error.

        For an endless recursion it is the outermost line, since the depth of the stack is arbitrary.
        """
        names = {str(self.user.place(name)): name for name in self.user.templates}
        frames: Iterator[Any] = traceback.walk_tb(error.__traceback__)
        places = [(names[f.f_code.co_filename], line) for f, line in frames if f.f_code.co_filename in names]
        if not places:
            return None
        return places[0 if isinstance(error, RecursionError) else -1]
