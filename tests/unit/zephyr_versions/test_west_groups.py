# SPDX-License-Identifier: Apache-2.0
"""west.yml: projects, and groups of modules."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from opwest.zephyr.west_manifest import read_west_manifest
from opwest.zephyr.workspace import Workspace
from requirements_support import need, skip_here

# --- The hint for a missing module: the group of opwest's west.yml, or the list of imported projects

OPWEST = Path(__file__).parents[3] / "west.yml"
ZEPHYR = "manifest: {projects: [{name: cmsis_6}, {name: picolibc}, {name: hal_gigadevice}, {name: hal_nordic}]}\n"
NORDIC = "run `west config manifest.group-filter -- +opwest-nordic`, then `west update`"


def workspace(top: Path, files: dict[str, str], path: str = "own", more: str = "") -> Workspace:
    """Return a workspace with a manifest repository, and Zephyr's manifest with four projects."""
    for name, text in {
        ".west/config": f"[manifest]\npath = {path}\nfile = west.yml\n{more}",
        "zephyr/west.yml": ZEPHYR,
        **files,
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return Workspace(top / "zephyr")


def hint(made: Workspace, name: str) -> str:
    return made.ways_to_install([name])[name]


def test_workspace_of_opwest(tmp_path: Path) -> None:
    made = workspace(tmp_path, {"opwest/west.yml": OPWEST.read_text()}, "opwest")
    assert hint(made, "hal_nordic") == f"activate its group 'opwest-nordic': {NORDIC}"
    assert hint(made, "cmsis_6") == "run `west update`"  # west update cmsis_6 is refused: it is imported
    assert (
        hint(made, "hal_gigadevice")
        == "add hal_gigadevice to your west.yml (to its name-allowlist, if it has one), then run `west update`"
    )


@pytest.mark.parametrize("form", ["true", "west.yml", "[west.yml]", "{file: west.yml}"])
def test_workspace_that_imports_opwest(tmp_path: Path, form: str) -> None:
    own = f"manifest: {{projects: [{{name: opwest, path: tools/opwest, import: {form}}}]}}\n"
    made = workspace(tmp_path, {"own/west.yml": own, "tools/opwest/west.yml": OPWEST.read_text()})
    assert hint(made, "hal_nordic") == f"activate its group 'opwest-nordic': {NORDIC}"


def test_allowlist_of_the_import_excludes_the_project(tmp_path: Path) -> None:
    own = "manifest: {projects: [{name: opwest, import: {name-allowlist: [zephyr, hal_st]}}]}\n"
    made = workspace(tmp_path, {"own/west.yml": own, "opwest/west.yml": OPWEST.read_text()})
    assert hint(made, "hal_nordic").startswith("add hal_nordic to your west.yml (to its name-allowlist")


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ("true", "run `west update`"),
        ("{name-blocklist: [hal_nordic]}", "add hal_nordic to your west.yml"),
        ("{name-allowlist: [cmsis_6]}", "add hal_nordic to your west.yml"),
        ("{name-allowlist: [cmsis_6, hal_nordic]}", "run `west update`"),
    ],
)
def test_workspace_without_opwest(tmp_path: Path, imports: str, expected: str) -> None:
    own = f"manifest: {{projects: [{{name: zephyr, import: {imports}}}]}}\n"
    assert hint(workspace(tmp_path, {"own/west.yml": own}), "hal_nordic").startswith(expected)


def test_zephyr_as_manifest_repository(tmp_path: Path) -> None:
    made = workspace(tmp_path, {}, "zephyr")
    assert hint(made, "hal_nordic") == "run `west update hal_nordic`"


def test_unreadable_manifest(tmp_path: Path) -> None:
    for config in ("", "[manifest\n", "[manifest]\npath = nowhere\n"):
        made = workspace(tmp_path, {".west/config": config})
        assert hint(made, "hal_nordic") == (
            "run `west update hal_nordic` (add hal_nordic to the name-allowlist of your west.yml, if it has one)"
        )


def test_commands_activate_all_groups_and_keep_those_of_the_user(tmp_path: Path) -> None:
    made = workspace(
        tmp_path, {"opwest/west.yml": OPWEST.read_text()}, "opwest", "group-filter = +opwest-nxp,-hal,-opwest-nordic\n"
    )
    ways = made.ways_to_install(["hal_nordic", "cmsis-nn", "hal_nxp"])
    elements = "+opwest-nxp,-hal,+opwest-nordic,+opwest-cmsis-nn"
    assert f"manifest.group-filter -- {elements}`" in ways["hal_nordic"]
    assert f"manifest.group-filter -- {elements}`" in ways["cmsis-nn"]
    assert ways["hal_nxp"] == "run `west update hal_nxp`"  # its group is active


def test_manifests_that_import_each_other(tmp_path: Path) -> None:
    text = "manifest: {self: {import: more}, projects: [{name: own, import: true}, {name: x, groups: [g]}, 5]}\n"
    made = workspace(tmp_path, {"own/west.yml": text, "own/more/a.yml": "manifest: {group-filter: [-g, 3, '-']}\n"})
    assert "'g'" in hint(made, "x")


def test_commands_of_the_hint_activate_the_project(tmp_path: Path) -> None:
    need("west")
    made = workspace(tmp_path, {"opwest/west.yml": OPWEST.read_text()}, "opwest")
    manifest = read_west_manifest(made.top)
    assert manifest is not None and manifest.inactive_groups("hal_nordic") == ("opwest-nordic",)
    command = hint(made, "hal_nordic").split("`")[1].split()
    assert command[:2] == ["west", "config"]
    subprocess.run([sys.executable, "-m", *command], cwd=tmp_path / "opwest", check=True)
    again = read_west_manifest(made.top)
    assert again is not None and again.inactive_groups("hal_nordic") == ()
    assert again.inactive_groups("hal_nxp") == ("opwest-nxp",)


# --- west.yml: its optional projects have Zephyr's revisions, are inactive by default, and can be activated

ROOT = Path(__file__).parents[3]
ZEPHYR_MANIFEST = Path.home() / "zephyrproject" / "zephyr"
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
    if not (ZEPHYR_MANIFEST / "west.yml").is_file():
        skip_here("no Zephyr workspace")
    (named,) = [one["revision"] for one in own()["projects"] if one["name"] == "zephyr"]
    text = (ZEPHYR_MANIFEST / "VERSION").read_text()
    numbers = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    found = f"v{numbers['VERSION_MAJOR']}.{numbers['VERSION_MINOR']}.{numbers['PATCHLEVEL']}"
    if found != named:
        skip_here(f"the tree is Zephyr {found}, west.yml names {named}: the revisions differ")
    return {
        one["name"]: one for one in yaml.safe_load((ZEPHYR_MANIFEST / "west.yml").read_text())["manifest"]["projects"]
    }


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
        content = yaml.safe_load((ZEPHYR_MANIFEST / file).read_text())
        # The folder submanifests, empty in Zephyr's repository: west reads it only in an existing workspace.
        assert content["manifest"]["self"].pop("import") == "submanifests"
        text: str = yaml.safe_dump(content)
        return text

    found = manifest.Manifest.from_data((ROOT / "west.yml").read_text(), importer=read)
    return {one.name for one in found.projects if found.is_active(one, extra_filter=enabled)}


def test_default_projects(imported: dict[str, dict[str, Any]]) -> None:
    assert active() == ALWAYS


@pytest.mark.slow
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
