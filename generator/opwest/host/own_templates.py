# SPDX-License-Identifier: Apache-2.0
"""The renderer of files for `opwest run`."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics
from opwest.render.templates.renderer import Renderer
from opwest.resources.templates import read_own_templates


def own_renderer() -> Renderer:
    """Return a renderer of opwest's own templates."""
    return Renderer(read_own_templates(), Diagnostics())
