# SPDX-License-Identifier: Apache-2.0
"""The sources of the service for models that were generated without it: CONFIG_OPWEST_SERVICE.

Builds that `opwest run` does not start call it: python -m opwest.runs.services PROJECT FOLDER.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import OpwestError
from opwest.base.paths import spelled
from opwest.render.model_files import render_service
from opwest.render.variants import service_file
from opwest.runs.compile import installed_runtime
from opwest.runs.harness import own_renderer
from opwest.runs.project_data import required_record


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
            if (sources / name).is_file() or (own / "src" / name).is_file():
                continue  # a variant has no copy of an equal file
            content = render_service(
                *(render, model["name"], model["manifest"], model["tensors"], model.get("pools", ())),
                model.get("arguments"),
            )
            file = place / name
            if not file.is_file() or file.read_bytes() != content:
                place.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)


def main(project: Path, folder: Path) -> int:
    """Write the sources for a project to a directory, print the path of the runtime, and return the exit code."""
    try:
        runtime = installed_runtime(project)
        write_services(folder, project, required_record(project))
    except OpwestError as error:
        print(error, file=sys.stderr)
        return 1
    print(spelled(runtime))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
