# SPDX-License-Identifier: Apache-2.0
"""Projects from manifests, generated like the commands do."""

from collections.abc import Sequence
from pathlib import Path

from opwest import pipeline
from opwest.base.diagnostics import Diagnostics
from opwest.project.request import Request
from opwest.project.writer import WriteResult
from opwest.render.application import Planned


def check(manifests: Sequence[Path], faults: Diagnostics) -> list[Planned]:
    """Return the checked and planned models. Raises OpwestError with every fault of every manifest."""
    found = pipeline.run(Request(tuple(manifests)), faults, "plan").examinations
    faults.raise_if_errors()
    return [(one.model, one.plan) for one in found]


def generate(manifests: Sequence[Path], output: Path, *, faults: Diagnostics, **options) -> WriteResult:
    """Write an application; `options` are those of a Request."""
    return pipeline.run(Request(tuple(manifests), output, **options), faults).written
