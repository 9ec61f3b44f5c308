# SPDX-License-Identifier: Apache-2.0
"""The template environment: undefined names are errors, and nothing is escaped or computed behind our back.

Templates of the user's own take the place of ours where a rendering is done inside `using`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any

import jinja2

from opwest.diagnostics import Diagnostics
from opwest.render.templates.c_layout import fit
from opwest.render.templates.user import UserRenderer
from opwest.resources import resource
from opwest.templates import SUFFIX, UserTemplates

_user: ContextVar[UserRenderer | None] = ContextVar("user_templates", default=None)


@contextlib.contextmanager
def using(templates: UserTemplates | None, faults: Diagnostics) -> Iterator[UserRenderer | None]:
    """Render with templates of the user's own, where there are any; report what is wrong with them."""
    renderer = None if templates is None else UserRenderer(templates, resource("project_template"), faults)
    if renderer is not None:
        renderer.check()
    before = _user.set(renderer)
    try:
        yield renderer
    finally:
        _user.reset(before)


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
    name, user = f"{template}{SUFFIX}", _user.get()
    if user is not None and user.has(name):
        return user.render(name, rows)
    text = _environment().get_template(name).render(**rows)
    return (fit(text) if template.endswith((".c", ".h")) else text).encode("utf-8")
