# SPDX-License-Identifier: Apache-2.0
"""The template environment: undefined names are errors, and nothing is escaped or computed behind our back."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2

from opwest.resources import resource


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(resource("project_template")),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(template: str, **rows: Any) -> bytes:
    """Return the file that a template of project_template makes of prepared rows."""
    return _environment().get_template(f"{template}.jinja").render(**rows).encode("utf-8")
