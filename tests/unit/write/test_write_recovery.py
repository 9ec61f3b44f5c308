# SPDX-License-Identifier: Apache-2.0
"""Changes between a crash and the next run."""

import json
import os
import shutil
import signal

import pytest
from opwest.write import disk, read_record, recover
from write_support import NEW_RECORD, child, generate_new, generate_old, refusal, tree


def interrupted(app, at):
    """Kill a generation of `app` at the first step whose name contains `at`."""

    def doomed():
        disk._step = lambda name: os.kill(os.getpid(), signal.SIGKILL) if at in name else None
        generate_new(app)

    assert child(doomed) == -signal.SIGKILL


def test_edits_after_a_crash_are_kept(tmp_path):
    app = tmp_path / "app"
    generate_old(app)
    interrupted(app, "keep/changed.c")
    (app / "keep/changed.c").write_text("edited")
    (app / "src/other.c").write_text("mine")
    (app / "added/deep/er.c").unlink()
    assert recover(app) == "rolled forward"
    assert (app / "keep/changed.c").read_text() == "edited"
    assert (app / "src/other.c").read_text() == "mine"
    text = refusal(generate_new, app)
    assert text.startswith(f"{app}/keep/changed.c: error: the file was edited; opwest does not overwrite it\n")
    (app / "keep/changed.c").unlink()
    generate_new(app)
    assert (app / "keep/changed.c").read_text() == "new\n"
    assert (app / "added/deep/er.c").read_text() == "new\n"
    assert (app / "src/other.c").read_text() == "mine"


def test_files_added_after_an_early_crash(tmp_path):
    app = tmp_path / "app"
    interrupted(app, ".opwest/stage/new/2")
    (app / "notes.txt").write_text("mine")
    generate_new(app)
    assert (app / "notes.txt").read_text() == "mine"


def journal_of(app):
    return app / ".opwest/journal.json"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda app: journal_of(app).write_text("{"), "invalid JSON (Expecting property name"),
        (lambda app: journal_of(app).write_text("[]"), "unknown structure"),
        (lambda app: journal_of(app).write_text("{}"), "unknown structure"),
        (lambda app: edit(app, format=2), "unknown structure"),
        (lambda app: edit(app, direction="up"), "unknown structure"),
        (lambda app: edit(app, created=["../x"]), "unknown structure"),
        (lambda app: edit(app, changes=[{"path": "/x", "old": None, "new": None}]), "unknown structure"),
        (lambda app: edit(app, changes=[{"path": "x", "old": 1, "new": None}]), "unknown structure"),
        (lambda app: edit(app, changes=[{"path": "x"}]), "unknown structure"),
        (lambda app: replaced_by_folder(app), "the file is a directory"),
        (lambda app: shutil.rmtree(app / ".opwest/stage"), "the content for keep/changed.c is missing or damaged"),
        (lambda app: corrupt(app), "the content for keep/changed.c is missing or damaged in .opwest/stage"),
    ],
)
def test_damaged_journal(tmp_path, damage, reason):
    app = tmp_path / "app"
    generate_old(app)
    interrupted(app, "keep/changed.c")
    damage(app)
    before = tree(app)
    for call in (recover, generate_new):
        text = refusal(call, app)
        prefix = f"{app}/.opwest/journal.json: error: damaged journal of an interrupted run: "
        assert text.startswith(prefix + reason)
        assert text.endswith(
            "  hint: the directory may contain new and old files: restore it from version control, or delete "
            ".opwest/journal.json and .opwest/stage, and generate again"
        )
    assert tree(app) == before
    shutil.rmtree(journal_of(app)) if journal_of(app).is_dir() else journal_of(app).unlink()
    shutil.rmtree(app / ".opwest/stage", ignore_errors=True)
    generate_new(app)  # as in the hint
    assert read_record(app) == NEW_RECORD
    assert (app / "keep/changed.c").read_text() == "new\n"


def edit(app, **changes):
    value = json.loads(journal_of(app).read_text())
    journal_of(app).write_text(json.dumps(value | changes))


def replaced_by_folder(app):
    journal_of(app).unlink()
    journal_of(app).mkdir()


def corrupt(app):
    for place in (app / ".opwest/stage/new").iterdir():
        place.write_bytes(place.read_bytes()[:-1])


def test_linked_stage_is_not_followed(tmp_path):
    app = tmp_path / "app"
    generate_old(app)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("mine")
    (app / ".opwest/stage").symlink_to(tmp_path / "precious")
    assert recover(app) == "rolled back"
    assert tree(tmp_path / "precious") == {"file": b"mine"}
    assert not (app / ".opwest/stage").is_symlink()


def test_recovery_does_not_follow_links(tmp_path):
    app = tmp_path / "app"
    generate_old(app)
    interrupted(app, "replace " + str(app / "keep/changed.c"))
    shutil.copytree(app / "keep", tmp_path / "elsewhere")
    shutil.rmtree(app / "keep")
    (app / "keep").symlink_to(tmp_path / "elsewhere")
    recover(app)
    assert (tmp_path / "elsewhere/changed.c").read_text() == "old\n"
    assert "keep: error: opwest does not write through a symbolic link" in refusal(generate_new, app)
