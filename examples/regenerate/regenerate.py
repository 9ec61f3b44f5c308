# SPDX-License-Identifier: Apache-2.0
"""Regenerate the applications of a repository, and hold their memory and flash to limits.

    python regenerate.py projects.toml [--check]

Each table of projects.toml names an application and its manifests or a model to import. The exit code is 1 if a project
has errors or exceeds a limit, or with --check if an application differs from its manifests.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

import opwest


def manifests_of(project: dict[str, Any], root: Path) -> list[Path]:
    """Return the manifests of a project; import its model first if the directory of the import does not exist."""
    if "model" not in project:
        return [root / name for name in project["manifests"]]
    folder = root / project["import_to"]
    if not folder.exists():
        done = opwest.import_model(root / project["model"], output=folder, **project.get("import", {}))
        print(f"{folder}: {done.operators} operators, {done.constant_bytes} bytes of constants")
    return sorted(folder.rglob("manifest.yaml"))


def regenerate(name: str, project: dict[str, Any], root: Path, *, check: bool) -> bool:
    """Check, write and measure one project; return whether it differed. Raises OpwestError."""
    application = root / project["application"]
    manifests = manifests_of(project, root)
    for model in opwest.check(manifests).models:
        pools = ", ".join(f"{pool.name} {pool.bytes} bytes" for pool in model.pools)
        print(f"{name}: {model.label}: {len(model.steps)} steps, {pools or 'no pool'}")
    if application.exists():
        changed = opwest.update(application, check=check).changed
    else:
        changed = True
        if not check:
            opwest.generate(manifests, output=application)
    if application.exists():
        opwest.report(application, fail_on=project.get("limits", []))
    print(f"{name}: {'different' if changed and check else 'written' if changed else 'unchanged'}")
    return changed


def main() -> int:
    """Regenerate all projects; continue after errors."""
    options = argparse.ArgumentParser(description="Regenerate applications of opwest.")
    options.add_argument("projects", type=Path, help="a TOML file with a table for each project")
    options.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a project differs")
    given = options.parse_args()
    failed = False
    for name, project in tomllib.loads(given.projects.read_text(encoding="utf-8")).items():
        try:
            changed = regenerate(name, project, given.projects.parent, check=given.check)
            failed = failed or (changed and given.check)
        except opwest.OpwestError as error:
            print(error, file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
