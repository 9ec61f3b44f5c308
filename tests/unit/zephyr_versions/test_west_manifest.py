# SPDX-License-Identifier: Apache-2.0
"""west.yml: its optional projects have Zephyr's revisions, are inactive by default, and can be activated.

The tree is that of the workspace, selected by its release (major, minor): revisions of another release differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from requirements_support import need, skip_here

ROOT = Path(__file__).parents[3]
ZEPHYR = Path.home() / "zephyrproject" / "zephyr"
ALLOWED = {"cmsis_6", "hal_stm32", "picolibc", "zcbor"}
ALWAYS = {"manifest", "zephyr", *ALLOWED}


def own() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "west.yml").read_text())["manifest"]
    return content


def optional() -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in own()["projects"] if "groups" in one}


@pytest.fixture(scope="module")
def imported() -> dict[str, dict[str, Any]]:
    """Return the projects of the tree's west.yml, if it is of the release that west.yml names."""
    if not (ZEPHYR / "west.yml").is_file():
        skip_here("no Zephyr workspace")
    (named,) = [one["revision"] for one in own()["projects"] if one["name"] == "zephyr"]
    text = (ZEPHYR / "VERSION").read_text()
    numbers = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    found = f"v{numbers['VERSION_MAJOR']}.{numbers['VERSION_MINOR']}.{numbers['PATCHLEVEL']}"
    if found != named:
        skip_here(f"the tree is Zephyr {found}, west.yml names {named}: the revisions differ")
    return {one["name"]: one for one in yaml.safe_load((ZEPHYR / "west.yml").read_text())["manifest"]["projects"]}


def test_revisions_and_paths_are_those_of_zephyr(imported: dict[str, dict[str, Any]]) -> None:
    assert len(optional()) == 9
    for name, project in optional().items():
        theirs = imported[name]
        for key in ("revision", "path", "west-commands"):
            assert project.get(key) == theirs.get(key), f"{name}: {key}"


def test_imported_projects_are_not_listed_again(imported: dict[str, dict[str, Any]]) -> None:
    """An explicit project replaces the imported one, with its groups."""
    assert set(imported) >= ALLOWED and ALLOWED.isdisjoint(optional())


def active(*enabled: str) -> set[str]:
    need("west")
    from west import manifest

    def read(project: Any, file: str) -> str:
        assert (project.name, file) == ("zephyr", "west.yml")
        content = yaml.safe_load((ZEPHYR / file).read_text())
        # The folder submanifests, empty in Zephyr's repository: west reads it only in an existing workspace.
        assert content["manifest"]["self"].pop("import") == "submanifests"
        text: str = yaml.safe_dump(content)
        return text

    found = manifest.Manifest.from_data((ROOT / "west.yml").read_text(), importer=read)
    return {one.name for one in found.projects if found.is_active(one, extra_filter=enabled)}


def test_default_projects(imported: dict[str, dict[str, Any]]) -> None:
    assert active() == ALWAYS


def test_each_optional_project_can_be_activated(imported: dict[str, dict[str, Any]]) -> None:
    groups: dict[str, set[str]] = {}
    for name, project in optional().items():
        for group in project["groups"]:
            groups.setdefault(group, set()).add(name)
    assert {f"-{group}" for group in groups} == set(own()["group-filter"])
    for group, names in groups.items():
        assert active(f"+{group}") == ALWAYS | names
    assert active(*(f"+{group}" for group in groups)) == ALWAYS | set(optional())


def test_imported_projects_keep_their_groups(imported: dict[str, dict[str, Any]]) -> None:
    assert active("-hal") == ALWAYS - {"cmsis_6", "hal_stm32"}
