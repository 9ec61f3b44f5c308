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
from jinja2.exceptions import SecurityError

from opwest.diagnostics import Diagnostics, beginning, nearest
from opwest.render.templates.sandbox import Sandbox
from opwest.templates import UserTemplates, is_extra, is_of_commands, known_templates

MAX_OUTPUT: Final = 64 << 20
_UNDEFINED = re.compile(r"'(\w+)' is undefined")


class UserRenderer:
    """The renderer of the templates of one directory; it reports errors, and the result is then an empty file."""

    def __init__(self, user: UserTemplates, own: Mapping[str, str], faults: Diagnostics) -> None:
        self.user = user
        self.faults = faults
        self._own = own
        self.known = known_templates(own)
        self._environment = Sandbox(
            loader=jinja2.ChoiceLoader(
                [
                    jinja2.FunctionLoader(self._load),
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
                self._check_copy(name, text)
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

    def _check_copy(self, name: str, text: str) -> None:
        """Warn about a changed template of a command; a copy of the whole project_template contains it unchanged."""
        if text != self._own[name]:
            self.faults.warning(
                f"template {name!r} has no effect: it is not a file of projects",
                self.user.place(name),
                hint="remove it",
            )

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
        found = [(names[f.f_code.co_filename], line) for f, line in frames if f.f_code.co_filename in names]
        if not found:
            return None
        return found[0 if isinstance(error, RecursionError) else -1]

    def _load(self, name: str) -> tuple[str, str, Callable[[], bool]] | None:
        text = self.user.templates.get(name)
        return None if text is None else (text, str(self.user.place(name)), lambda: True)
