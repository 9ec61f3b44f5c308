# SPDX-License-Identifier: Apache-2.0
"""Sources of the opwest service, for applications generated without them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opwest.host.own_templates import own_renderer
from opwest.render.model_files import render_service, service_file


def write_services(folder: Path, project: Path, record: Mapping[str, Any]) -> None:
    """Write a source to `folder` for each model of a project's record that does not have one.

    Unchanged files are not written again, which would cause a new compilation.
    """
    render = own_renderer()
    for model in record["models"]:
        name = service_file(model["name"])
        if (project / "models" / model["name"] / "src" / name).is_file():
            continue
        content = render_service(
            render, model["name"], model["manifest"], model["tensors"], model.get("pools", ()), model.get("arguments")
        )
        place = folder / name
        if not place.is_file() or place.read_bytes() != content:
            folder.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
