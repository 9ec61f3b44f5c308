# SPDX-License-Identifier: Apache-2.0
"""Common parts of all run modes: the project's record and the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opwest.diagnostics import nearest
from opwest.host.compile import fail
from opwest.host.record import check_record
from opwest.render.variants import variant_option
from opwest.write.writer import read_record


def project_record(project: Path) -> dict[str, Any] | None:
    """Return the record of a project, None without one. Raises OpwestError for an incomplete project."""
    record = read_record(project) if project.is_dir() else None
    if record is not None and (project / ".opwest" / "journal.json").exists():
        raise fail(
            "incomplete project: a run of opwest was interrupted",
            project,
            hint="run 'opwest generate' again",
        )
    if record is not None:
        check_record(record, project)
    return record


def choose_model(name: str | None, project: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given model, or the only one."""
    models: dict[str, dict[str, Any]] = {model["name"]: model for model in record["models"]}
    if name is None:
        if len(models) > 1:
            raise fail(f"the project has several models: {', '.join(models)}", project, expected="--model NAME")
        return next(iter(models.values()))
    if name not in models:
        raise fail(f"unknown model {name!r}", project, hint=nearest(name, models))
    return models[name]


def selected_variant(model: dict[str, Any], configuration: Mapping[str, str]) -> dict[str, Any]:
    """Return the record of the variant that an image with a configuration uses, that of the base without one."""
    for variant in model.get("variants", ()):
        if configuration.get(variant_option(model["name"], variant["variant"])) == "y":
            found: dict[str, Any] = variant
            return found
    return model


def tensors_of(model: Mapping[str, Any], role: str) -> list[dict[str, Any]]:
    """Return the inputs or the outputs of a model record."""
    return [tensor for tensor in model["tensors"] if tensor["role"] == role]
