# SPDX-License-Identifier: Apache-2.0
"""The renderer of files that are made when a project is run."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics
from opwest.render.templates.renderer import Renderer
from opwest.resources.templates import read_own_templates
from opwest.templates import Templates


def own_renderer() -> Renderer:
    """Return a renderer of opwest's own templates."""
    return Renderer(Templates(read_own_templates()), Diagnostics())
