# SPDX-License-Identifier: Apache-2.0
"""Sources of the opwest service, for applications generated without them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opwest.host.own_templates import own_renderer
from opwest.render.model_files import render_service, service_file


def write_services(folder: Path, project: Path, record: Mapping[str, Any]) -> None:
    """Write a source to `folder` for each model of a project's record that has none, and to a directory per variant.

    Unchanged files are not written again, which would cause a new compilation.
    """
    render = own_renderer()
    for base in record["models"]:
        name = service_file(base["name"])
        own = project / "models" / base["name"]
        places = [(base, own / "src", folder)]
        for variant in base.get("variants", ()):
            place = own / "variants" / variant["variant"] / "src"
            places.append((variant, place, folder / variant["variant"]))
        for model, sources, place in places:
            if (sources / name).is_file():
                continue
            content = render_service(
                *(render, model["name"], model["manifest"], model["tensors"], model.get("pools", ())),
                model.get("arguments"),
            )
            file = place / name
            if not file.is_file() or file.read_bytes() != content:
                place.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
