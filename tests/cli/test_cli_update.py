# SPDX-License-Identifier: Apache-2.0
"""`opwest update`: one project, and many projects of which one is broken."""

import json
import re
import shutil
import subprocess

import pytest
from campaign import sized
from golden_support import copy_project
from test_cli_commands import report_of


def change(path, old, new):
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new))


def tree(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "mutex")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def manifest(tmp_path):
    (path,) = copy_project("minimal", tmp_path / "source")
    return path


@pytest.fixture
def app(succeed, manifest, tmp_path):
    app = tmp_path / "app"
    succeed("generate", manifest, "-o", app, "--runtime=module")
    return app


@pytest.fixture
def edited(app, manifest):
    """A project with edits of the user and a changed manifest."""
    change(app / "src/main.c", "int main(void)\n{\n", 'int main(void)\n{\n\tprintk("mine\\n");\n')
    change(app / "prj.conf", "4096", "8192")
    change(app / "CMakeLists.txt", "cmake_minimum", "# mine\ncmake_minimum")
    change(manifest, "model: minimal", "model: minimal\napplication: {overlays: {qemu_cortex_m3: new.overlay}}")
    (manifest.parent / "new.overlay").write_text("/ { };\n")
    return app


def test_unchanged_project(opwest, succeed, app):
    before = tree(app)
    done = opwest("update", app)
    assert (done.code, done.out, done.err) == (0, f"{app}: unchanged\n", "")
    assert tree(app) == before
    succeed("update", "--check", app)
    assert opwest("update", "--dry-run", app).out == ""


def test_edits_are_kept_after_changes_of_manifest_and_template(succeed, edited, tmp_path):
    app = edited
    (app / "boards").mkdir(exist_ok=True)
    (app / "boards/mine.overlay").write_text("/ { };\n")
    done = succeed("update", app)
    assert done.out.startswith(f"{app}: updated: ") and not done.err
    assert "mine" in (app / "src/main.c").read_text() and "8192" in (app / "prj.conf").read_text()
    assert (app / "boards/qemu_cortex_m3.overlay").exists()
    template = tmp_path / "template/src/main.c.jinja"
    template.parent.mkdir(parents=True)
    template.write_text('/* Of our company. */\n{% include "opwest/src/main.c.jinja" %}')
    succeed("update", app, "--template", tmp_path / "template")
    text = (app / "src/main.c").read_text()
    assert text.startswith("/* Of our company. */\n") and 'printk("mine\\n")' in text
    assert (app / "boards/mine.overlay").read_text() == "/ { };\n"
    assert "# mine\n" in (app / "CMakeLists.txt").read_text()
    succeed("update", "--check", app)


def test_edited_overlay_is_kept(succeed, app, manifest):
    overlay = manifest.with_name("board.overlay")
    overlay.write_text("/ {\n\tone: one { };\n\n\n\ttwo: two { };\n};\n")
    overlays = "application: {overlays: {qemu_cortex_m3: board.overlay}}"
    change(manifest, "model: minimal", f"model: minimal\nboards: [qemu_cortex_m3]\n{overlays}")
    succeed("update", app)
    change(app / "boards/qemu_cortex_m3.overlay", "one: one", "mine: one")
    change(overlay, "two: two", "more: two")
    succeed("update", app)
    text = (app / "boards/qemu_cortex_m3.overlay").read_text()
    assert text == "/ {\n\tmine: one { };\n\n\n\tmore: two { };\n};\n"


def test_conflict(opwest, fail, app, manifest):
    change(app / "prj.conf", "CONFIG_OPWEST_MODEL_MINIMAL=y", "CONFIG_OPWEST_MODEL_MINIMAL=n")
    change(manifest, "model: minimal", "model: other")
    done = fail("update", app)
    assert (
        f"{app}/prj.conf:2:1: error: conflict: these lines were changed by both you and opwest\n"
        "  expected: one of the two versions between '<<<<<<< yours' and '>>>>>>> opwest'\n"
        "  hint: edit the lines and delete the three markers\n"
    ) in done.err
    text = (app / "prj.conf").read_text()
    yours, new = "CONFIG_OPWEST_MODEL_MINIMAL=n", "CONFIG_OPWEST_MODEL_OTHER=y"
    assert f"<<<<<<< yours\n{yours}\n=======\n{new}\n>>>>>>> opwest\n" in text
    for arguments in (["update", app], ["update", "--check", app]):
        done = fail(*arguments)
        assert f"{app}/prj.conf:2:1: error: the file contains markers of an earlier conflict" in done.err
    (app / "prj.conf").write_text(re.sub(r"<<<<<<<[^>]*>>>>>>> opwest", "CONFIG_OPWEST_MODEL_OTHER=n", text))
    done = opwest("update", app)
    assert (done.code, done.err) == (0, "")


def test_check_lists_the_changes(fail, edited, manifest):
    change(manifest, "model: minimal", "model: minimal\ndescription: another one")
    before = tree(edited)
    done = fail("update", "--check", edited)
    assert not done.err
    lines = done.out.splitlines()
    assert re.fullmatch(rf"{re.escape(str(edited))}: would change: \d+ to write, 1 to merge", lines[0])
    assert f"  {edited}/CMakeLists.txt: merge" in lines
    assert f"  {edited}/boards/qemu_cortex_m3.overlay: write" in lines
    assert f"  {edited}/README.md: replace" in lines
    assert not [line for line in lines if ".opwest" in line]
    assert tree(edited) == before


def test_dry_run_shows_the_diff(succeed, edited):
    before = tree(edited)
    done = succeed("update", "--dry-run", edited)
    assert not done.err
    assert tree(edited) == before
    if shutil.which("git"):
        copy = shutil.copytree(edited, edited.parent / "copy")
        subprocess.run(["git", "apply"], cwd=copy, input=done.out.encode(), check=True)
        succeed("update", edited)
        patched, updated = (
            {path: text for path, text in tree(folder).items() if not path.startswith(".opwest/")}
            for folder in (copy, edited)
        )
        assert patched == updated


def test_dry_run_of_a_conflict_and_of_a_broken_manifest(fail, app, manifest):
    change(app / "prj.conf", "MINIMAL=y", "MINIMAL=n")
    change(manifest, "model: minimal", "model: other")
    before = tree(app)
    done = fail("update", "--dry-run", app)
    assert "+>>>>>>> opwest" in done.out
    conflict = (
        f"{app}/prj.conf: error: conflict: both you and opwest changed the same lines, in 1 place\n"
        "  hint: an update would write both versions into the file, between markers\n"
    )
    assert conflict in done.err
    done = fail("update", "--check", app)
    assert conflict in done.err and f"  {app}/prj.conf: merge, with conflicts\n" in done.out
    change(manifest, "call: negate", "call: negat")
    for arguments in (["--dry-run"], []):
        done = fail("update", *arguments, app)
        assert "undefined operator 'negat'" in done.err and not done.out
    assert tree(app) == before


def test_json(opwest, succeed, fail, edited):
    done = succeed("update", "--dry-run", "--json", edited)
    assert not done.err
    (value,) = report_of(done.out)["result"]
    assert value["state"] == "would_change" and "boards/qemu_cortex_m3.overlay" in value["would_change"]
    assert value["diff"].startswith("diff --git ")
    fail("update", "--check", "--json", edited)
    (value,) = report_of(opwest("update", "--json", edited).out)["result"]
    assert (value["state"], value["conflicts"]) == ("updated", [])
    assert "boards/qemu_cortex_m3.overlay" in value["written"]
    done = opwest("update", "--json", edited / "src")
    report = report_of(done.out)
    assert done.code == 1 and report["result"] == [{"directory": str(edited / "src"), "state": "failed"}]


def test_generate_lists_the_changes_of_an_update(opwest, succeed, app, manifest):
    change(manifest, "model: minimal", "model: other")
    done = succeed("generate", manifest, "-o", app, "--runtime=module")
    assert f"{app}: note: kept, although newly generated content differs: CMakeLists.txt, " in done.err
    assert f"  hint: merge the new content with `opwest update {app}`\n" in done.err
    succeed("update", app)
    assert not opwest("generate", manifest, "-o", app, "--runtime=module").err


def test_options_are_recorded(opwest, succeed, manifest, tmp_path):
    app = tmp_path / "app"
    opwest("generate", manifest, "-o", app, "--runtime=module", "--board", "qemu_cortex_m3")
    succeed("update", "--check", app)
    assert not (app / "modules").exists()
    assert json.loads((app / ".opwest/origin.json").read_text())["boards"] == ["qemu_cortex_m3"]


def test_nested_project_is_rejected(succeed, fail, app, manifest):
    for place in (app / "inner", app / "src/deep/er"):
        message = f"{place}: error: the directory is inside another opwest project, {app}\n"
        hint = "  hint: choose a directory outside that project\n"
        assert fail("generate", manifest, "-o", place).err == message + hint and not place.exists()
    succeed("generate", manifest, "-o", app / "build/models", "--layout=model")


# --- many


MANY = sized(10, 50)


@pytest.fixture
def many(opwest, manifest, tmp_path):
    """Edited projects with their manifests; one manifest is invalid."""
    (tmp_path / "all/0").mkdir(parents=True)
    shutil.copytree(manifest.parent, tmp_path / "all/0/source")
    opwest("generate", tmp_path / "all/0/source/manifest.yaml", "-o", tmp_path / "all/0/app", "--runtime=module")
    change(tmp_path / "all/0/app/prj.conf", "4096", "8192")
    for number in range(1, MANY):
        shutil.copytree(tmp_path / "all/0", tmp_path / f"all/{number}")
    for number in range(MANY - 1):
        change(tmp_path / f"all/{number}/source/manifest.yaml", "model: minimal", f"model: m{number}")
    change(tmp_path / "all/7/source/manifest.yaml", "call: negate", "call: negat")
    return [tmp_path / f"all/{number}/app" for number in range(MANY)]


@pytest.mark.slow
def test_many_projects_one_broken(opwest, succeed, fail, many):
    broken = tree(many[7])
    done = fail("update", *many)
    lines = done.err.splitlines()
    progress = [line for line in lines if line.startswith("[")]
    starts = [f"[{index + 1:>{len(str(MANY))}}/{MANY}] {folder}: " for index, folder in enumerate(many)]
    assert len(progress) == MANY and progress[0].startswith(f"{starts[0]}updated: ")
    assert (progress[7], progress[-1]) == (f"{starts[7]}failed", f"{starts[-1]}unchanged")
    assert done.out == f"{MANY} projects: 1 failed, 1 unchanged, {MANY - 2} updated\n  failed: {many[7]}\n"
    (fault,) = [line for line in lines if "error" in line]
    assert fault.startswith(f"{many[7].parent}/source/manifest.yaml:16:14: error: undefined operator 'negat'")
    assert tree(many[7]) == broken
    for number in {*range(MANY - 1)} - {7}:
        text = (many[number] / "prj.conf").read_text()
        assert f"CONFIG_OPWEST_MODEL_M{number}=y" in text and "8192" in text
    change(many[7].parent / "source/manifest.yaml", "call: negat,", "call: negate,")
    assert opwest("update", *many).out == f"{MANY} projects: {MANY - 1} unchanged, 1 updated\n"
    succeed("update", "--check", *many)


def test_many_as_json_and_in_a_dry_run(fail, many, tmp_path):
    some = [*many[5:9], tmp_path / "absent", many[5] / "../app"]
    done = fail("update", "--check", "--json", *some)
    assert not done.err
    states = [value["state"] for value in report_of(done.out)["result"]]
    assert states == ["would_change", "would_change", "failed", "would_change", "failed"]
    done = fail("update", "--dry-run", *some)
    path = (many[5] / "prj.conf").as_posix().lstrip("/")
    assert f"diff --git a/{path} b/{path}\n" in done.out
    assert f"{tmp_path / 'absent'}: error: not a directory generated by opwest" in done.err
