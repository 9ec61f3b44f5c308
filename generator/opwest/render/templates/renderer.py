# SPDX-License-Identifier: Apache-2.0
"""The renderer of templates: undefined names are errors, and nothing is escaped or computed implicitly."""

from __future__ import annotations

from typing import Any

import jinja2

from opwest.base.c_format import format_c
from opwest.base.diagnostics import Diagnostics
from opwest.render.templates.files import SUFFIX, Templates


class _Environment(jinja2.Environment):
    """The environment of opwest's templates, whose rows are dicts: `row.name` looks for a key first."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a member of an object, of a dict the value of a key."""
        if type(obj) is dict and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


class Renderer:
    """Renders files from prepared rows; a user's template replaces that of opwest with the same path."""

    def __init__(self, templates: Templates, faults: Diagnostics) -> None:
        self.user = None
        if templates.user is not None:
            from opwest.render.templates.user import UserRenderer  # Jinja's sandbox takes long to import

            self.user = UserRenderer(templates.user, templates.own, faults)
            self.user.check()
        self._own = _Environment(
            loader=jinja2.DictLoader(templates.own),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
            bytecode_cache=templates.compiled,
        )

    def __call__(self, template: str, **rows: Any) -> bytes:
        """Return the file rendered from a template and prepared rows; `template` is its path without the suffix."""
        name = f"{template}{SUFFIX}"
        if self.user is not None and self.user.has(name):
            text = self.user.render(name, rows).decode("utf-8")
        else:
            text = self._own.get_template(name).render(**rows)
        return (format_c(text) if template.endswith((".c", ".h")) else text).encode("utf-8")
