# SPDX-License-Identifier: Apache-2.0
"""Changes between a crash and the next run, errors of the system, and two concurrent writers."""

import json
import os
import resource
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from opwest.project import disk, journal
from opwest.project.writer import read_record, recover
from write_support import (
    NEW_RECORD,
    OLD,
    OLD_RECORD,
    child,
    gen,
    generate_new,
    generate_old,
    refusal,
    times,
    tree,
    write,
)


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


# --- errors of the system


@pytest.fixture
def unprivileged():
    """A directory of an ordinary user with that user's permissions: root may write everywhere."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    if os.geteuid() != 0:
        yield folder
    else:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(0)
    for place in [folder, *folder.rglob("*")]:
        if place.is_dir():
            place.chmod(0o755)
    shutil.rmtree(folder)


def test_no_permission_to_create_the_directory(unprivileged):
    unprivileged.chmod(0o555)
    assert refusal(generate_new, unprivileged / "app") == (
        f"{unprivileged}/app: error: cannot write the project: Permission denied\n  hint: the project is unchanged"
    )


@pytest.mark.parametrize("place", [".", ".opwest", "keep", "gone/deep"])
def test_no_permission_to_write(unprivileged, place):
    app = unprivileged / "app"
    generate_old(app)
    old = tree(app)
    (app / place).chmod(0o555)
    text = refusal(generate_new, app)
    assert "error: cannot write the project: Permission denied\n  hint: the project is unchanged" in text
    assert tree(app) == old
    assert recover(app) == "nothing"
    (app / place).chmod(0o755)
    generate_new(app)


def test_no_permission_to_read(unprivileged):
    app = unprivileged / "app"
    generate_old(app)
    (app / "keep/changed.c").chmod(0)
    assert refusal(generate_new, app).startswith(
        f"{app}/keep/changed.c: error: cannot write the project: Permission denied"
    )
    (app / ".opwest/lock.json").chmod(0)
    assert refusal(read_record, app) == (f"{app}/.opwest/lock.json: error: cannot read the project: Permission denied")


def test_file_too_large(tmp_path):
    app = tmp_path / "app"
    generate_old(app)
    old = tree(app)

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        text = refusal(write, app, *OLD, gen("big", "x" * 100_000))
        assert "error: cannot write the project: File too large" in text

    assert child(limited) == 0
    assert tree(app) == old


# --- concurrent writers


def test_concurrent_opwest_process(tmp_path, monkeypatch):
    app = tmp_path / "app"
    generate_old(app)
    monkeypatch.setattr(journal, "WAIT_SECONDS", 0.2)
    before = times(app)
    with journal.held(app):
        start = time.monotonic()
        assert refusal(generate_new, app) == (
            f"opwest: error: another opwest process is writing {app}\n  hint: wait for it to finish"
        )
        assert 0.2 <= time.monotonic() - start < 2
        assert read_record(app) == OLD_RECORD
    assert times(app) == before
    generate_new(app)


def test_second_writer_waits(tmp_path):
    app = tmp_path / "app"

    def slow():
        disk._step = lambda name: time.sleep(0.01)
        write(app, *OLD, record=OLD_RECORD)

    def both():
        process = os.fork()
        if process == 0:
            try:
                slow()
            finally:
                os._exit(0)
        while not (app / ".opwest/stage").exists():
            time.sleep(0.001)
        generate_new(app)
        assert read_record(app) == NEW_RECORD
        assert os.waitpid(process, 0)[1] == 0

    assert child(both) == 0
    expected = tmp_path / "expected"
    generate_old(expected)
    generate_new(expected)
    assert tree(app) == tree(expected)


def test_mutex_of_an_ended_process(tmp_path):
    app = tmp_path / "app"
    generate_old(app)
    assert not (app / ".opwest/mutex").exists()
    (app / ".opwest/mutex").touch()  # a remaining file is no lock
    generate_new(app)
    assert not (app / ".opwest/mutex").exists()


def test_mutex_is_not_a_link(tmp_path):
    app = tmp_path / "app"
    generate_old(app)
    (app / ".opwest/mutex").symlink_to(tmp_path / "made")
    assert f"{app}/.opwest/mutex: error: cannot write the project: " in refusal(generate_new, app)
    assert not (tmp_path / "made").exists()
