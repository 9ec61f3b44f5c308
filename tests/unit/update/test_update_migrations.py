# SPDX-License-Identifier: Apache-2.0
"""Older manifests, versions of Zephyr, and the origin of a project."""

import json
import shutil

import pytest
import yaml
from opwest.base.diagnostics import Diagnostics
from opwest.cli.main import main
from opwest.manifest import schema
from opwest.project import migrations
from opwest.project.migrations import Migration, migrate
from opwest.project.origin import Origin, read_origin
from update_support import change, source_and_app, update
from write_support import refusal, tree

# --- Manifests of an older version: there is none yet, so these migrations are made up


def replace_value(text, place, old, new):
    """Replace `old` at a line and column of `text` (both from 1)."""
    lines = text.split("\n")
    line, column = place
    rest = lines[line - 1][column - 1 :]
    if not rest.startswith(old):
        raise ValueError(f"line {line}, column {column} does not begin with {old!r}")
    lines[line - 1] = lines[line - 1][: column - 1] + new + rest[len(old) :]
    return "\n".join(lines)


def rename_title(text, manifest):
    """Version 0 called the model `title`."""
    return replace_value(text, manifest.keys_at["title"], "title", "model")


def needs_a_model(text, manifest):
    """Rely on a key that a good manifest has."""
    return text + manifest["model"]


FROM_0 = Migration(0, "title is now called model", rename_title)
FROM_MINUS_1 = Migration(-1, "shapes doubled", lambda text, _: text.replace("shape: [2]", "shape: [4]"))

OLD = b"""\
# A comment at the top.
version: 0  # the version
title: minimal   # its name

objects: [{files: [negate.c]}]  # kept
"""


def test_migrations_keep_unchanged_text():
    faults = Diagnostics()
    done = migrate(OLD, "m.yaml", faults, migrations=[FROM_0])
    assert not len(faults)
    assert done.content == OLD.replace(b"version: 0", b"version: 1").replace(b"title", b"model")
    assert (done.version, done.steps) == (0, ("title is now called model",))


def test_consecutive_migrations():
    content = OLD.replace(b"version: 0", b"version: -1").replace(b"kept", b"shape: [2]")
    done = migrate(content, "m.yaml", Diagnostics(), migrations=[FROM_0, FROM_MINUS_1])
    assert b"shape: [4]" in done.content and b"version: 1  # the version" in done.content
    assert done.steps == ("shapes doubled", "title is now called model")


@pytest.mark.parametrize(
    "head", [b"{version: 0, title: x}", b"%YAML 1.2\n---\nversion: 0x0\r\ntitle: x\r\n", b"title: x\nversion:\n  0"]
)
def test_version_key_at_any_position(head):
    migration = Migration(0, "", lambda text, _: text.replace("title", "model"))
    done = migrate(head, "m.yaml", Diagnostics(), migrations=[migration])
    assert done.content == head.replace(b"title", b"model").replace(b"0x0", b"1").replace(b" 0", b" 1")


@pytest.mark.parametrize(
    "content", [b"version: 1\n", b"version: 7\n", b"version: '0'\n", b"a: b\n", b"{", b"\xff", b""]
)
def test_faults_of_loading_are_not_reported_by_migration(content):
    faults = Diagnostics()
    assert migrate(content, "m.yaml", faults, migrations=[FROM_0]) is None
    assert not len(faults)


@pytest.mark.parametrize(
    ("known", "version", "expected"),
    [
        ([], 0, "version: 1"),
        ([FROM_0], -1, "version: 0 to 1"),
        ([FROM_MINUS_1], -1, "version: 1"),
        ([], -(10**30), "version: 1"),
    ],
)
def test_version_without_a_migration(known, version, expected):
    faults = Diagnostics()
    content = OLD.replace(b"version: 0", f"version: {version}".encode())
    assert migrate(content, "m.yaml", faults, migrations=known) is None
    (fault,) = faults
    assert str(fault) == (
        f"m.yaml:2:10: error: no migration of the manifest from version {version} "
        "to version 1\n"
        f"  expected: {expected}\n"
        "  hint: rewrite it for version 1 (docs/manifest.md)"
    )


@pytest.mark.parametrize(
    "apply",
    [needs_a_model, lambda text, _: "{", lambda text, _: "a: b\n", lambda text, _: text.replace("version: 0", "")],
)
def test_migration_without_a_result(apply):
    faults = Diagnostics()
    assert migrate(OLD, "m.yaml", faults, migrations=[Migration(0, "a change", apply)]) is None
    (fault,) = faults
    assert str(fault) == (
        "m.yaml:2:10: error: cannot migrate the manifest from version 0 to 1 (a change)\n"
        "  expected: a valid manifest of version 0\n"
        "  hint: correct it for that version, or rewrite it; the file is unchanged"
    )


def test_replacing_a_missing_value():
    with pytest.raises(ValueError, match="line 1, column 1 does not begin with 'b'"):
        replace_value("a", (1, 1), "b", "c")


# --- as a part of update


@pytest.fixture
def old_project(tmp_path, monkeypatch):
    manifest, app = source_and_app(tmp_path)
    monkeypatch.setattr(migrations, "MIGRATIONS", (FROM_0,))
    change(manifest, "version: 1", "version: 0  # old")
    change(manifest, "model: minimal", "title: renamed")
    return manifest, app


def test_update_migrates_and_keeps_the_old_manifest(old_project):
    manifest, app = old_project
    old = manifest.read_text()
    manifest.chmod(0o640)
    outcome, output = update(app)
    assert outcome.state == "updated"
    copy = manifest.with_name("manifest.yaml.version0")
    assert output == (
        f"{manifest}: note: migrated from version 0: title is now called model\n  hint: the original is in {copy}"
    )
    assert copy.read_text() == old
    assert manifest.read_text() == old.replace("version: 0", "version: 1").replace("title", "model")
    assert manifest.stat().st_mode & 0o777 == 0o640
    assert (app / "models/renamed").is_dir()
    assert update(app)[0].state == "unchanged"
    manifest.write_text(old + "# other\n")  # again, from version control: the first copy is not overwritten
    update(app)
    assert copy.read_text() == old and manifest.with_name("manifest.yaml.version0-2").read_text() == old + "# other\n"


def test_preview_of_a_migration_writes_no_files(old_project):
    manifest, app = old_project
    before = tree(manifest.parent), tree(app)
    outcome, output = update(app, preview=True)
    assert (tree(manifest.parent), tree(app)) == before
    assert outcome.state == "would change"
    assert output == f"{manifest}: note: would be migrated from version 0: title is now called model"
    assert [(c.path, b"version: 1" in c.new) for c in outcome.migrated] == [(str(manifest), True)]
    assert any(change.path.startswith("models/renamed/") for change in outcome.changes)


def test_failed_migration_changes_no_files(old_project):
    manifest, app = old_project
    change(manifest, "version: 0", "version: -3")
    before = tree(manifest.parent), tree(app)
    assert "no migration of the manifest from version -3" in refusal(update, app)
    assert (tree(manifest.parent), tree(app)) == before


def test_newer_version_is_rejected(tmp_path):
    manifest, app = source_and_app(tmp_path)
    change(manifest, "version: 1", "version: 2")
    text = refusal(update, app)
    assert text.startswith(f"{manifest}:3:10: error: 'version' is ")
    assert text.endswith("expected: version: 1\n  hint: update opwest: the manifest has a newer version")


def test_one_version_and_no_migration_exist():
    """With version 2, add its migration and a test of the migration."""
    assert schema.SUPPORTED_VERSIONS == (1,)
    assert migrations.MIGRATIONS == ()


# --- Twister's files: their names follow the version of Zephyr, and an existing project keeps them

TREE = "VERSION_MAJOR = {}\nVERSION_MINOR = {}\nPATCHLEVEL = 0\n"


def twister_files(app):
    paths = [path for name in ("sample", "testcase", "tests") for path in app.rglob(f"{name}.yaml")]
    return sorted(str(path.relative_to(app)) for path in paths)


OLD_VERSIONS = ["sample.yaml", "tests/minimal/testcase.yaml"]
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
    assert twister_files(app) == OLD_VERSIONS, "an unknown version: the names that all versions read"
    assert generated(manifest, tmp_path / "lts", "--zephyr-version", "3.7") == OLD_VERSIONS
    assert generated(manifest, tmp_path / "before", "--zephyr-version", "4.4.1") == OLD_VERSIONS
    new = tmp_path / "new"
    assert generated(manifest, new, "--zephyr-version", "4.5") == NEW
    for before, after in zip(OLD_VERSIONS, NEW, strict=True):
        assert (new / after).read_bytes() == (app / before).read_bytes(), "only the name differs"
        assert yaml.safe_load((new / after).read_text())["tests"]


def test_the_workspace_decides_without_a_version(tmp_path, monkeypatch):
    manifest, _ = source_and_app(tmp_path)
    base = tree_of(tmp_path / "zephyr", "4.5")
    assert generated(manifest, tmp_path / "a", "--zephyr-base", str(base)) == NEW
    monkeypatch.setenv("ZEPHYR_BASE", str(tree_of(tmp_path / "older", "4.2")))
    assert generated(manifest, tmp_path / "b") == OLD_VERSIONS
    assert generated(manifest, tmp_path / "c", "--zephyr-version", "4.6") == NEW
    # A project keeps its names in other workspaces, for `generate` and for `update`.
    assert generated(manifest, tmp_path / "a") == NEW
    assert main(["update", "--check", str(tmp_path / "a")]) == 0
    monkeypatch.setenv("ZEPHYR_BASE", str(base))
    assert generated(manifest, tmp_path / "b") == OLD_VERSIONS
    assert main(["update", "--check", str(tmp_path / "b")]) == 0


def test_update_to_a_version_replaces_the_files(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    _, app = source_and_app(tmp_path)
    edited = app / OLD_VERSIONS[1]
    edited.write_text(edited.read_text().replace("tags: opwest", "tags: mine"))
    capsys.readouterr()
    assert main(["update", str(app), "--zephyr-version", "4.5"]) == 0
    assert "testcase.yaml: note: kept: no longer generated, but edited by you" in capsys.readouterr().err
    assert twister_files(app) == sorted([*NEW, OLD_VERSIONS[1]])
    edited.unlink()
    assert main(["update", "--check", str(app)]) == 0, "the origin records the version"
    assert main(["update", str(app), "--zephyr-version", "4.4"]) == 0
    assert twister_files(app) == OLD_VERSIONS


# --- The origin of a project: recorded without absolute paths, found again, and reported if it is lost


def origin_of(app):
    return json.loads((app / ".opwest/origin.json").read_text())


def test_paths_are_relative_to_the_project(tmp_path):
    _, app = source_and_app(tmp_path)
    assert origin_of(app) == {
        "format": 1,
        "manifests": ["../source/manifest.yaml"],
        "template": None,
        "boards": [],
        "zephyr_version": None,
    }
    assert str(tmp_path) not in (app / ".opwest/lock.json").read_text()


def test_clone_of_both_can_be_updated(tmp_path, monkeypatch):
    source_and_app(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there/copy")
    app = tmp_path / "there/copy/app"
    shutil.rmtree(tmp_path / "here")
    monkeypatch.chdir(app)
    outcome, report = update(app.relative_to(app))
    assert (outcome.state, report) == ("unchanged", "")
    assert str(outcome.result) and origin_of(app)["manifests"] == ["../source/manifest.yaml"]


def test_links_in_paths_are_resolved_like_the_system(tmp_path):
    manifest, app = source_and_app(tmp_path / "real")
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/app").symlink_to(app)
    assert Origin((manifest,)).file(tmp_path / "deep/er/app").content == Origin((manifest,)).file(app).content
    assert update(tmp_path / "deep/er/app")[0].state == "unchanged"


def test_linked_manifest_keeps_its_name(tmp_path):
    manifest, app = source_and_app(tmp_path)
    link = manifest.with_name("link.yaml")
    link.symlink_to(manifest)
    assert json.loads(Origin((link,)).file(app).content)["manifests"] == ["../source/link.yaml"]


def test_moved_manifest(tmp_path):
    manifest, app = source_and_app(tmp_path)
    before = tree(app)
    moved = tmp_path / "moved"
    manifest.parent.rename(moved)
    assert refusal(update, app) == (
        f"{app}/.opwest/origin.json: error: manifest not found: {manifest}\n"
        "  expected: the path of the manifest\n"
        f"  hint: specify the new path once: opwest update {app} --manifest PATH/manifest.yaml"
    )
    assert tree(app) == before
    assert update(app, manifests=(moved / "manifest.yaml",))[0].state == "unchanged"
    assert origin_of(app)["manifests"] == ["../moved/manifest.yaml"]
    assert update(app)[0].state == "unchanged"


def test_project_of_an_older_opwest_requires_its_manifest_once(tmp_path):
    manifest, app = source_and_app(tmp_path)
    (app / ".opwest/origin.json").unlink()
    assert refusal(update, app) == (
        f"{app}: error: the project does not record the manifests of its model 'minimal'\n"
        "  expected: .opwest/origin.json (absent in projects of an older version of opwest)\n"
        f"  hint: specify them once: opwest update {app} --manifest PATH/manifest.yaml"
    )
    update(app, manifests=(manifest,))
    assert update(app)[0].state == "unchanged"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "not a JSON object"),
        ('{"format": 2}', "'format' is 2, not 1"),
        ('{"format": 1}', "'manifests' is empty"),
        ('{"format": 1, "manifests": "a"}', "'manifests' is not a list of strings"),
        ('{"format": 1, "manifests": ["a\\u0000"]}', "'manifests' is not a list of strings"),
        ('{"format": 1, "manifests": ["a"], "template": 1}', "'template' or 'zephyr_version' is not a string"),
        ('{"format": 1, "manifests": ["a"], "boards": [1]}', "'boards' is not a list of strings"),
    ],
)
def test_damaged_origin(tmp_path, content, reason):
    manifest, app = source_and_app(tmp_path)
    place = app / ".opwest/origin.json"
    place.write_text(content)
    text = refusal(update, app)
    assert text.startswith(f"{place}: error: the file is damaged: {reason}")
    assert text.endswith("hint: delete it and specify the manifests: opwest update DIR --manifest FILE")
    assert update(app, manifests=(manifest,))[0].state == "unchanged"
    assert read_origin(app) is not None


def test_no_project(tmp_path):
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "absent"):
        assert refusal(update, place) == (
            f"{place}: error: not a directory generated by opwest\n"
            "  hint: generate one with 'opwest generate MANIFEST -o DIR'"
        )
    assert not (tmp_path / "absent").exists() and not list((tmp_path / "folder").iterdir())


def test_models_inside_a_build_are_not_an_application(tmp_path):
    _, app = source_and_app(tmp_path, layout="model")
    assert not (app / ".opwest/origin.json").exists()
    assert "generated by a build, without an application\n  hint: build again" in refusal(update, app)


def test_boards_of_the_command_line_are_recorded(tmp_path):
    _, app = source_and_app(tmp_path)
    update(app, boards=("qemu_cortex_m3",))
    assert "qemu_cortex_m3" in (app / "sample.yaml").read_text()
    assert update(app)[0].state == "unchanged"
    assert "qemu_cortex_m3" in (app / "sample.yaml").read_text()


def test_renamed_model(tmp_path):
    """The model's directory belongs to opwest; the configuration is merged with the user's edits."""
    manifest, app = source_and_app(tmp_path)
    change(app / "prj.conf", "CONFIG_MAIN_STACK_SIZE=4096", "CONFIG_MAIN_STACK_SIZE=8192")
    change(manifest, "model: minimal", "model: smallest")
    outcome, report = update(app)
    assert (outcome.result.merged, report) == (("prj.conf",), "")
    text = (app / "prj.conf").read_text()
    assert "CONFIG_OPWEST_MODEL_SMALLEST=y\n" in text and "MINIMAL" not in text and "=8192\n" in text
    assert sorted(p.name for p in (app / "models").iterdir()) == ["smallest"]
    assert "smallest_run(" in (app / "src/main.c").read_text()
