# SPDX-License-Identifier: Apache-2.0
"""Where a project comes from: remembered without absolute paths, found again, and said clearly when it is lost."""

import json
import shutil

import pytest
from opwest.project.origin import Origin, read_origin
from update_support import change, source_and_app, update
from write_support import refusal, tree


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


def test_a_clone_of_both_can_be_updated(tmp_path, monkeypatch):
    source_and_app(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there/copy")
    app = tmp_path / "there/copy/app"
    shutil.rmtree(tmp_path / "here")
    monkeypatch.chdir(app)
    outcome, told = update(app.relative_to(app))
    assert (outcome.state, told) == ("unchanged", "")
    assert str(outcome.result) and origin_of(app)["manifests"] == ["../source/manifest.yaml"]


def test_links_on_the_way_are_followed_as_the_system_does(tmp_path):
    manifest, app = source_and_app(tmp_path / "real")
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/app").symlink_to(app)
    assert Origin((manifest,)).file(tmp_path / "deep/er/app").content == Origin((manifest,)).file(app).content
    assert update(tmp_path / "deep/er/app")[0].state == "unchanged"


def test_a_manifest_that_is_a_link_keeps_its_name(tmp_path):
    manifest, app = source_and_app(tmp_path)
    link = manifest.with_name("link.yaml")
    link.symlink_to(manifest)
    assert json.loads(Origin((link,)).file(app).content)["manifests"] == ["../source/link.yaml"]


def test_a_manifest_that_was_moved(tmp_path):
    manifest, app = source_and_app(tmp_path)
    before = tree(app)
    moved = tmp_path / "moved"
    manifest.parent.rename(moved)
    assert refusal(update, app) == (
        f"{app}/.opwest/origin.json: error: the manifest is no longer where the project was made from: {manifest}\n"
        "  expected: the path from the project to its manifest\n"
        f"  hint: say where they are now, once: opwest update {app} --manifest manifest.yaml"
    )
    assert tree(app) == before
    assert update(app, manifests=(moved / "manifest.yaml",))[0].state == "unchanged"
    assert origin_of(app)["manifests"] == ["../moved/manifest.yaml"]
    assert update(app)[0].state == "unchanged"


def test_a_project_of_an_older_opwest_is_asked_for_its_manifest_once(tmp_path):
    manifest, app = source_and_app(tmp_path)
    (app / ".opwest/origin.json").unlink()
    assert refusal(update, app) == (
        f"{app}: error: the project does not say where its model 'minimal' was made from\n"
        "  expected: .opwest/origin.json, which an older opwest did not write\n"
        f"  hint: say it once: opwest update {app} --manifest PATH/manifest.yaml"
    )
    update(app, manifests=(manifest,))
    assert update(app)[0].state == "unchanged"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "it is not a JSON object"),
        ('{"format": 2}', "its format is 2, not 1"),
        ('{"format": 1}', "'manifests' is empty"),
        ('{"format": 1, "manifests": "a"}', "'manifests' is not a list of text"),
        ('{"format": 1, "manifests": ["a\\u0000"]}', "'manifests' is not a list of text"),
        ('{"format": 1, "manifests": ["a"], "template": 1}', "'template' and 'zephyr_version' are not text"),
        ('{"format": 1, "manifests": ["a"], "boards": [1]}', "'boards' is not a list of text"),
    ],
)
def test_a_damaged_origin(tmp_path, content, reason):
    manifest, app = source_and_app(tmp_path)
    place = app / ".opwest/origin.json"
    place.write_text(content)
    text = refusal(update, app)
    assert text.startswith(f"{place}: error: the file is damaged: {reason}")
    assert text.endswith("hint: delete it, and name the manifests: opwest update DIR --manifest FILE")
    assert update(app, manifests=(manifest,))[0].state == "unchanged"
    assert read_origin(app) is not None


def test_no_project(tmp_path):
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "absent"):
        assert refusal(update, place) == (
            f"{place}: error: this is not a folder that opwest generated\n"
            "  hint: opwest generate MANIFEST -o DIR makes one"
        )
    assert not (tmp_path / "absent").exists() and not list((tmp_path / "folder").iterdir())


def test_models_inside_a_build_are_no_application(tmp_path):
    _, app = source_and_app(tmp_path, layout="model")
    assert not (app / ".opwest/origin.json").exists()
    assert "made inside a build\n  hint: build again instead" in refusal(update, app)


def test_boards_of_the_command_line_are_remembered(tmp_path):
    _, app = source_and_app(tmp_path)
    update(app, boards=("qemu_cortex_m3",))
    assert "qemu_cortex_m3" in (app / "sample.yaml").read_text()
    assert update(app)[0].state == "unchanged"
    assert "qemu_cortex_m3" in (app / "sample.yaml").read_text()


def test_a_renamed_model(tmp_path):
    """The model's folder is opwest's; the configuration that names the model is merged with what the user wrote."""
    manifest, app = source_and_app(tmp_path)
    change(app / "prj.conf", "CONFIG_MAIN_STACK_SIZE=4096", "CONFIG_MAIN_STACK_SIZE=8192")
    change(manifest, "model: minimal", "model: smallest")
    outcome, told = update(app)
    assert (outcome.result.merged, told) == (("prj.conf",), "")
    text = (app / "prj.conf").read_text()
    assert "CONFIG_OPWEST_MODEL_SMALLEST=y\n" in text and "MINIMAL" not in text and "=8192\n" in text
    assert sorted(p.name for p in (app / "models").iterdir()) == ["smallest"]
    assert "smallest_run(" in (app / "src/main.c").read_text()
