# SPDX-License-Identifier: Apache-2.0
"""Kills, system errors and full disks at every step leave the complete old project or the complete new one."""

import ctypes
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from opwest.project import disk
from opwest.project.writer import read_record, recover
from requirements_support import need, skip_here
from write_support import (
    NEW_RECORD,
    child,
    copy,
    fail_at_every_step,
    generate_new,
    generate_old,
    is_old,
    kill_at_every_step,
    refusal,
    tree,
)


@pytest.fixture(params=["first", "update"])
def start(request, tmp_path):
    """The project before (absent or old) with its tree, and the tree after the new generation."""
    start = tmp_path / "start"
    if request.param == "update":
        generate_old(start)
        (start / "src/main.c").write_text("edited by the user\n")
        (start / "notes.txt").write_text("mine\n")
    expected = copy(start, tmp_path / "expected")
    generate_new(expected)
    return start, tree(start), tree(expected)


@pytest.mark.slow
def test_killed_at_every_step(start, tmp_path):
    before, old, new = start
    assert len(kill_at_every_step(before, generate_new, old, new, tmp_path)) >= 40


@pytest.mark.slow
def test_system_error_at_every_step(start, tmp_path, monkeypatch):
    before, old, new = start
    monkeypatch.setattr(disk, "_step", disk._step)  # restored at the end
    assert fail_at_every_step(before, generate_new, old, new, tmp_path) >= 40


@pytest.mark.slow
def test_killed_during_the_rollback(start, tmp_path):
    """A step fails, and the process is killed during the rollback."""
    before, old, new = start
    points = 0
    steps = []

    def run(app, fail, kill):
        def step(name):
            steps.append(name)
            if len(steps) == fail:
                raise OSError(errno.EIO, "broken")
            if len(steps) == kill:
                os.kill(os.getpid(), signal.SIGKILL)

        disk._step = step
        generate_new(app)

    monkey = disk._step
    try:
        run(copy(before, tmp_path / "app"), 0, 0)
    finally:
        disk._step = monkey
    first = next(n for n, name in enumerate(steps) if name.endswith("journal.json") and "replace" in name) + 2
    last = next(n for n, name in enumerate(steps) if name.endswith("stage/done")) + 1
    names = list(steps)
    for fail in sorted({first, (first + last) // 2, last}):
        kill = fail
        while True:
            kill += 1
            app = copy(before, tmp_path / "app")
            steps.clear()
            code = child(lambda app=app, fail=fail, kill=kill: refusal(run, app, fail, kill))
            if code != -signal.SIGKILL:
                assert code == 0
                assert is_old(tree(app), old)
                break
            points += 1
            again = copy(app, tmp_path / "again")
            if recover(app) == "rolled forward":  # killed before the rollback
                assert tree(app) == new, (names[fail - 1], kill)
            else:
                assert is_old(tree(app), old), (names[fail - 1], kill)
            generate_new(again)
            assert tree(again) == new
    print(f"{points} crash points on the way back")
    assert points > 20


@pytest.mark.slow
def test_failure_during_the_rollback(tmp_path, monkeypatch):
    app = tmp_path / "app"
    generate_old(app)

    def broken(source, place):
        if place.name == "changed.c":
            raise PermissionError(errno.EACCES, "Permission denied", str(source), None, str(place))
        if "journal-back" in str(source):
            raise OSError(errno.EIO, "Input/output error", str(source), None, str(place))
        replace(source, place)

    replace = disk.replace
    monkeypatch.setattr(disk, "replace", broken)
    assert refusal(generate_new, app) == (
        f"{app}/.opwest/journal.json: error: cannot complete the new project, nor restore the old one: "
        "Input/output error\n"
        "  hint: the project is incomplete: remove the cause and run opwest again to complete it"
    )
    text = refusal(generate_new, app)
    assert text.startswith(f"{app}/keep/changed.c: error: cannot complete an interrupted run: Permission denied")
    assert refusal(recover, app) == text
    monkeypatch.undo()
    assert recover(app) == "rolled forward"
    assert read_record(app) == NEW_RECORD


@pytest.mark.slow
def test_file_times_are_restored(tmp_path, monkeypatch):
    app = tmp_path / "app"
    generate_old(app)
    before = {p: p.stat().st_mtime_ns for p in app.rglob("*") if p.is_file()}
    for links in (True, False):
        if not links:
            monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links")))
        with monkeypatch.context() as patch:
            patch.setattr(
                disk, "_step", lambda name: (_ for _ in ()).throw(OSError(5, "x")) if "done" in name else None
            )
            refusal(generate_new, app)
        assert {p: p.stat().st_mtime_ns for p in app.rglob("*") if p.is_file()} == before
    generate_new(app)
    assert read_record(app) == NEW_RECORD


@pytest.mark.slow
@pytest.mark.parametrize("links", [True, False])
def test_every_change_is_a_step(tmp_path, monkeypatch, links):
    """The tests above cover all changes of the disk: each change follows a step."""
    app = tmp_path / "app"
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links")))

    def watched():
        announced, seen, stray = [], set(), []

        def audit(event, arguments):
            if event == "open":
                changes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            else:
                changes = event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link")
            if changes and str(app) in str(arguments):
                mutex = str(arguments[0]).endswith("mutex") and Path(arguments[0]).exists()
                seen.add(event)
                if not announced and not mutex:
                    stray.append((event, arguments))
                announced.clear()

        disk._step = announced.append
        sys.addaudithook(audit)
        generate_old(app)
        generate_new(app)
        assert not stray
        assert seen == {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", *(["os.link"] if links else [])}

    assert child(watched) == 0


# --- Full disks: at every write and every sync, with half of a file written, and a small real file system

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Half:
    """A file on a disk that becomes full while it is written."""

    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def write(self, content):
        self._file.write(content[: len(content) // 2])
        raise FULL


@pytest.mark.parametrize("what", ["write", "sync"])
def test_full_at_every_file(start, tmp_path, monkeypatch, what):
    before, old, new = start
    real_open, real_sync = Path.open, os.fsync
    number = 0
    while True:
        number += 1
        app = copy(before, tmp_path / "app")
        count = 0

        def opened(path, mode="r", *rest, number=number, **named):
            nonlocal count
            file = real_open(path, mode, *rest, **named)
            count += mode == "xb"
            return Half(file) if mode == "xb" and count == number else file

        def synced(handle, number=number):
            nonlocal count
            count += 1
            if count == number:
                raise FULL
            real_sync(handle)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", opened) if what == "write" else patch.setattr(os, "fsync", synced)
            try:
                text = refusal(generate_new, app)
            except AssertionError:
                assert tree(app) == new
                if count < number:
                    break
                continue
        assert "error: cannot write the project: No space left on device\n" in text
        assert text.endswith("hint: the project is unchanged; free some space")
        found = tree(app)
        assert is_old(found, old), number
        assert recover(app) == "nothing"
        generate_new(app)
        assert tree(app) == new
    assert number > 8


_SMALL = """\
import ctypes, sys
sys.path[:0] = {path!r}
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"tmpfs", {folder!r}.encode(), b"tmpfs", 0, b"size={size},nr_inodes={inodes}") != 0:
    sys.exit(77)
from write_support import generate_new, generate_old, refusal, tree, write, gen
app = Path({folder!r}) / "app"
generate_old(app)
old = tree(app)
text = refusal(write, app, gen("large.c", "x" * 400_000), *[gen(f"many/{{n}}.c", str(n)) for n in range(100)])
assert "No space left on device" in text and "the project is unchanged; free some space" in text, text
assert tree(app) == old, tree(app)
generate_new(app)
print("old, then new")
"""


@pytest.mark.parametrize(("size", "inodes"), [(300_000, 1000), (4_000_000, 90)], ids=["bytes", "files"])
def test_full_file_system(tmp_path, size, inodes):
    """A tmpfs in a separate mount namespace, which is not visible outside."""
    need("unshare")
    (tmp_path / "disk").mkdir()
    script = _SMALL.format(path=[p for p in sys.path if p], folder=str(tmp_path / "disk"), size=size, inodes=inodes)
    for options in (["--mount"], ["--mount", "--user", "--map-root-user"]):
        command = ["unshare", *options, sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            assert done.stdout == "old, then new\n"
            return
        if done.returncode not in (1, 77) or "Traceback" in done.stderr:
            pytest.fail(done.stderr)
    skip_here(f"no tmpfs can be mounted here: {done.stderr.strip() or os.strerror(ctypes.get_errno())}")
