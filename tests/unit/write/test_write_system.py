# SPDX-License-Identifier: Apache-2.0
"""Errors of the system, and two concurrent writers."""

import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from opwest.write import disk, mutex, read_record, recover
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
    monkeypatch.setattr(mutex, "WAIT_SECONDS", 0.2)
    before = times(app)
    with mutex.held(app):
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
    assert (app / ".opwest/mutex").exists()  # a remaining file is no lock
    generate_new(app)


def test_mutex_is_not_a_link(tmp_path):
    app = tmp_path / "app"
    generate_old(app)
    (app / ".opwest/mutex").unlink()
    (app / ".opwest/mutex").symlink_to(tmp_path / "made")
    assert f"{app}/.opwest/mutex: error: cannot write the project: " in refusal(generate_new, app)
    assert not (tmp_path / "made").exists()
