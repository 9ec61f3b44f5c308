# SPDX-License-Identifier: Apache-2.0
"""The runtime of a generated application: the Zephyr module of the workspace, or a copy."""

import json
import shutil
from pathlib import Path

import opwest as api
import pytest
from golden_support import copy_project
from opwest import __version__
from opwest.base.resources import resource

WEST = """manifest:
  projects:
    - name: company
      path: company
      import: {path-prefix: deps}
    - name: other
      path: other
      groups: [optional]
  group-filter: [-optional]
"""
COMPANY = "manifest: {projects: [{name: models-runtime, path: opwest}]}\n"
COPIED = "runtime: copied to modules/opwest\n"
MISSING = "the application needs the Zephyr module opwest, which the west workspace does not list"


@pytest.fixture
def manifest(tmp_path):
    (path,) = copy_project("minimal", tmp_path / "source")
    return path


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A west workspace with an imported project, opwest's repository in part, and an inactive project."""
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    monkeypatch.delenv("EXTRA_ZEPHYR_MODULES", raising=False)
    top = tmp_path / "workspace"
    for path, text in {
        ".west/config": "[manifest]\npath = mine\nfile = west.yml\n[zephyr]\nbase = zephyr\n",
        "mine/west.yml": WEST,
        "company/west.yml": COMPANY,
        "zephyr/VERSION": "VERSION_MAJOR = 4\nVERSION_MINOR = 2\n",
    }.items():
        put(top / path, text)
    repository(top / "deps/opwest")
    return top


def put(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def repository(place: Path, version: str = __version__) -> None:
    put(place / "zephyr/module.yml", "name: opwest\nbuild:\n  cmake: zephyr_module\n  kconfig: Kconfig\n")
    put(place / "generator/opwest/__init__.py", f'__version__ = "{version}"\n')
    header = place / "zephyr_module/include/opwest/model.h"
    put(header, "")
    shutil.copy(resource("zephyr_module") / "include/opwest/model.h", header)


def files(app: Path) -> set[str]:
    return {path.relative_to(app).as_posix() for path in app.rglob("*") if path.is_file()}


def test_workspace_that_lists_the_module(succeed, manifest, workspace):
    app = workspace / "applications/app"
    done = succeed("generate", manifest, "-o", app)
    assert done.out.endswith(f"runtime: the Zephyr module opwest in {workspace}/deps/opwest\n")
    assert not any(path.startswith("modules/") for path in files(app))
    assert "modules/opwest" not in (app / "README.md").read_text()


def test_zephyr_base_precedes_the_directory(succeed, manifest, workspace, tmp_path, monkeypatch):
    monkeypatch.setenv("ZEPHYR_BASE", str(workspace / "zephyr"))
    report = json.loads(succeed("generate", manifest, "-o", tmp_path / "app", "--json").out)["result"]
    assert (report["runtime"], report["runtime_module"]) == ("module", f"{workspace}/deps/opwest")
    put(tmp_path / "zephyr/VERSION", "VERSION_MAJOR = 4\nVERSION_MINOR = 2\n")
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path / "zephyr"))
    assert succeed("generate", manifest, "-o", workspace / "app").out.endswith(COPIED)


@pytest.mark.parametrize("module", ["manifest", "environment"])
def test_other_places_of_the_module(succeed, manifest, workspace, module, monkeypatch):
    shutil.rmtree(workspace / "deps")
    place = workspace / "mine" if module == "manifest" else workspace / "elsewhere"
    repository(place)
    if module == "environment":
        monkeypatch.setenv("EXTRA_ZEPHYR_MODULES", f"{workspace}/none;{place}")
    done = succeed("generate", manifest, "-o", workspace / "app")
    assert done.out.endswith(f"runtime: the Zephyr module opwest in {place}\n")


@pytest.mark.parametrize("lack", ["workspace", "module", "group", "damaged"])
def test_a_copy_elsewhere(succeed, manifest, workspace, lack):
    app = workspace / "app"
    if lack == "workspace":
        app = manifest.parent / "app"
    elif lack == "damaged":
        (workspace / "mine/west.yml").write_text("manifest: [")
    else:
        shutil.rmtree(workspace / "deps")
    if lack == "group":
        repository(workspace / "other")
    assert succeed("generate", manifest, "-o", app).out.endswith(COPIED)
    assert (app / "modules/opwest/CMakeLists.txt").is_file()


def test_another_version_of_the_module(succeed, manifest, workspace):
    repository(workspace / "deps/opwest", "0.1.0")
    done = succeed("generate", manifest, "-o", workspace / "app")
    assert done.out.endswith(COPIED)
    assert (
        f"{workspace}/deps/opwest: warning: the module opwest of the workspace has another version "
        "(opwest 0.1.0, metadata 8) than this opwest: the runtime is copied\n"
        "  hint: update the module, then generate again\n"
    ) in done.err


def test_an_application_keeps_its_runtime(succeed, manifest, workspace, tmp_path):
    """Also on a machine without the workspace; a request replaces it."""
    copied, used = workspace / "copied", workspace / "used"
    succeed("generate", manifest, "-o", copied, "--runtime=vendored")
    succeed("generate", manifest, "-o", used)
    for app in (copied, used):
        before = files(app)
        for command in (("generate", manifest, "-o", app), ("update", app)):
            assert not succeed(*command).err
            assert files(app) == before
    moved = used.rename(tmp_path / "moved")
    assert "which the build must have" in succeed("generate", manifest, "-o", moved).out
    assert succeed("generate", manifest, "-o", moved, "--runtime=vendored").out.endswith(COPIED)
    assert succeed("generate", manifest, "-o", moved).out.endswith(COPIED)


def test_the_module_of_an_application_is_gone(succeed, manifest, workspace):
    app = workspace / "app"
    succeed("generate", manifest, "-o", app)
    repository(workspace / "deps/opwest", "9.9")
    for command in (("generate", manifest, "-o", app), ("update", app)):
        assert "(opwest 9.9, metadata 8) than this opwest: the application needs this version" in succeed(*command).err
    shutil.rmtree(workspace / "deps")
    for command in (("generate", manifest, "-o", app), ("update", app), ("update", "--check", app)):
        assert succeed(*command).err == (
            f"{workspace}: warning: {MISSING}\n"
            "  hint: add the project opwest to your west.yml and run `west update`, or copy the runtime: "
            f"opwest generate MANIFEST -o {app} --runtime=vendored\n"
        )


def test_the_function_for_python(manifest, workspace):
    done = api.generate(manifest, output=workspace / "app")
    assert (done.runtime, done.runtime_module) == ("module", workspace / "deps/opwest")
    done = api.generate(manifest, output=workspace / "copy", runtime="vendored")
    assert (done.runtime, done.runtime_module) == ("vendored", None)
