# SPDX-License-Identifier: Apache-2.0
"""Twister's files: their names follow the version of Zephyr, and an existing project keeps them."""

import yaml
from opwest.cli.main import main
from update_support import source_and_app

TREE = "VERSION_MAJOR = {}\nVERSION_MINOR = {}\nPATCHLEVEL = 0\n"


def twister_files(app):
    paths = [path for name in ("sample", "testcase", "tests") for path in app.rglob(f"{name}.yaml")]
    return sorted(str(path.relative_to(app)) for path in paths)


OLD = ["sample.yaml", "tests/minimal/testcase.yaml"]
NEW = ["tests.yaml", "tests/minimal/tests.yaml"]


def generated(manifest, folder, *options):
    assert main(["generate", str(manifest), "-o", str(folder), *options]) == 0
    return twister_files(folder)


def tree_of(folder, version):
    folder.mkdir()
    (folder / "VERSION").write_text(TREE.format(*version.split(".")))
    return folder


def test_the_version_decides(tmp_path, monkeypatch):
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    manifest, app = source_and_app(tmp_path)
    assert twister_files(app) == OLD, "an unknown version: the names that all versions read"
    assert generated(manifest, tmp_path / "lts", "--zephyr-version", "3.7") == OLD
    assert generated(manifest, tmp_path / "before", "--zephyr-version", "4.4.1") == OLD
    new = tmp_path / "new"
    assert generated(manifest, new, "--zephyr-version", "4.5") == NEW
    for before, after in zip(OLD, NEW, strict=True):
        assert (new / after).read_bytes() == (app / before).read_bytes(), "only the name differs"
        assert yaml.safe_load((new / after).read_text())["tests"]


def test_the_workspace_decides_without_a_version(tmp_path, monkeypatch):
    manifest, _ = source_and_app(tmp_path)
    base = tree_of(tmp_path / "zephyr", "4.5")
    assert generated(manifest, tmp_path / "a", "--zephyr-base", str(base)) == NEW
    monkeypatch.setenv("ZEPHYR_BASE", str(tree_of(tmp_path / "older", "4.2")))
    assert generated(manifest, tmp_path / "b") == OLD
    assert generated(manifest, tmp_path / "c", "--zephyr-version", "4.6") == NEW
    # A project keeps its names in other workspaces, for `generate` and for `update`.
    assert generated(manifest, tmp_path / "a") == NEW
    assert main(["update", "--check", str(tmp_path / "a")]) == 0
    monkeypatch.setenv("ZEPHYR_BASE", str(base))
    assert generated(manifest, tmp_path / "b") == OLD
    assert main(["update", "--check", str(tmp_path / "b")]) == 0


def test_update_to_a_version_replaces_the_files(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    _, app = source_and_app(tmp_path)
    edited = app / OLD[1]
    edited.write_text(edited.read_text().replace("tags: opwest", "tags: mine"))
    capsys.readouterr()
    assert main(["update", str(app), "--zephyr-version", "4.5"]) == 0
    assert "testcase.yaml: note: kept: no longer generated, but edited by you" in capsys.readouterr().err
    assert twister_files(app) == sorted([*NEW, OLD[1]])
    edited.unlink()
    assert main(["update", "--check", str(app)]) == 0, "the origin records the version"
    assert main(["update", str(app), "--zephyr-version", "4.4"]) == 0
    assert twister_files(app) == OLD
