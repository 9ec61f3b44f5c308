# SPDX-License-Identifier: Apache-2.0
"""Projects from manifests, as the commands make them."""

from collections.abc import Sequence
from pathlib import Path

from opwest import pipeline
from opwest.diagnostics import Diagnostics
from opwest.render.application import Planned
from opwest.render.templates.renderer import Renderer
from opwest.request import Request
from opwest.resources.templates import read_own_templates
from opwest.templates import Templates
from opwest.write import WriteResult


def renderer() -> Renderer:
    """Return a renderer of opwest's own templates."""
    return Renderer(Templates(read_own_templates()), Diagnostics())


def check(manifests: Sequence[Path], faults: Diagnostics) -> list[Planned]:
    """Return the checked and planned models. Raises OpwestError with every fault of every manifest."""
    found = pipeline.run(Request(tuple(manifests)), faults, "plan").found
    faults.raise_if_errors()
    return [(one.model, one.plan) for one in found]


def generate(manifests: Sequence[Path], output: Path, *, faults: Diagnostics, **options) -> WriteResult:
    """Write an application; `options` are those of a Request."""
    return pipeline.run(Request(tuple(manifests), output, **options), faults).written
