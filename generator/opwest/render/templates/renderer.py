# SPDX-License-Identifier: Apache-2.0
"""The renderer of templates: undefined names are errors, and nothing is escaped or computed implicitly."""

from __future__ import annotations

from typing import Any

import jinja2

from opwest.diagnostics import Diagnostics
from opwest.render.templates.c_layout import fit
from opwest.render.templates.user import UserRenderer
from opwest.templates import SUFFIX, Templates


class Renderer:
    """Renders files from prepared rows; a user's template replaces that of opwest with the same path."""

    def __init__(self, templates: Templates, faults: Diagnostics) -> None:
        self.user = None if templates.user is None else UserRenderer(templates.user, templates.own, faults)
        if self.user is not None:
            self.user.check()
        self._own = jinja2.Environment(
            loader=jinja2.DictLoader(templates.own),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
        )

    def __call__(self, template: str, **rows: Any) -> bytes:
        """Return the file rendered from a template and prepared rows; `template` is its path without the suffix."""
        name = f"{template}{SUFFIX}"
        if self.user is not None and self.user.has(name):
            text = self.user.render(name, rows).decode("utf-8")
        else:
            text = self._own.get_template(name).render(**rows)
        return (fit(text) if template.endswith((".c", ".h")) else text).encode("utf-8")
