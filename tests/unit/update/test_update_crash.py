# SPDX-License-Identifier: Apache-2.0
"""Killed updates leave the complete old project or the complete new one, with its merges and their bases."""

import hashlib
import itertools
import os
import random
import signal
import time
from pathlib import PurePosixPath

import pytest
from campaign import sized
from opwest.base.files import ProjectFile
from opwest.cli.main import main
from opwest.project import disk
from opwest.project.disk import replace_file
from opwest.project.writer import recover
from update_support import change, merge, source_and_app
from write_support import (
    at_step,
    child,
    copy,
    fail_at_every_step,
    gen,
    kill_at_every_step,
    killed_at,
    tree,
    user,
    write,
)

pytestmark = pytest.mark.slow

LINES = "one\ntwo\nthree\nfour\nfive\n"


def local(content):
    return ProjectFile(PurePosixPath(".opwest/origin.json"), content, "local")


OLD = (
    *[
        user(path, LINES)
        for path in ("src/merged.c", "src/conflict.c", "plain.conf", "deleted.conf", "boards/gone.conf")
    ],
    ProjectFile(PurePosixPath("logo"), b"\0old", "user"),
    gen("models/m/a.c", "old\n"),
    gen("models/m/gone.c"),
    local(b"here\n"),
)
NEW = (
    *[user(path, LINES.replace("five", "FIVE")) for path in ("src/merged.c", "src/conflict.c", "plain.conf")],
    user("deleted.conf", LINES),
    user("boards/new.conf"),
    ProjectFile(PurePosixPath("logo"), b"\0new", "user"),
    gen("models/m/a.c", "new\n"),
    gen("models/n/b.c"),
    local(b"there\n"),
)


def digest(folder):
    """Return one hash of the content of a directory."""
    content = repr(sorted(tree(folder).items())).encode("utf-8", "surrogateescape")
    return hashlib.sha256(content).hexdigest()


def edit(app):
    (app / "src/merged.c").write_text("mine\n" + LINES)
    (app / "src/conflict.c").write_text(LINES.replace("five", "fünf"))
    (app / "logo").write_bytes(b"\0mine")
    (app / "deleted.conf").unlink()
    (app / "notes.txt").write_text("mine\n")


@pytest.fixture
def start(tmp_path):
    start = tmp_path / "start"
    write(start, *OLD)
    edit(start)
    merge(copy(start, tmp_path / "expected"), *NEW, record={"new": True})
    return start, tree(start), tree(tmp_path / "expected")


def run(app):
    merge(app, *NEW, record={"new": True})


def test_killed_at_every_step(start, tmp_path):
    before, old, new = start
    assert len(kill_at_every_step(before, run, old, new, tmp_path)) >= 60


def test_system_error_at_every_step(start, tmp_path, monkeypatch):
    before, old, new = start
    monkeypatch.setattr(disk, "_step", disk._step)  # restored at the end
    assert fail_at_every_step(before, run, old, new, tmp_path) > 60


def test_manifest_is_replaced_atomically(tmp_path):
    manifest = tmp_path / "manifest.yaml"
    number = 0
    while True:
        number += 1
        for place in tmp_path.iterdir():
            place.unlink()
        manifest.write_text("old")
        if not killed_at(number, lambda: replace_file(manifest, b"new", "version0")):
            break
        copies = {place.name: place.read_text() for place in tmp_path.glob("manifest.yaml.version0*")}
        assert manifest.read_text() == "old" or (manifest.read_text() == "new" and copies)
        assert set(copies.values()) <= {"old"}
        replace_file(manifest, b"new", "version0")
        assert manifest.read_text() == "new"
        kept = {place.read_text() for place in tmp_path.glob("manifest.yaml.version0*")}
        assert "old" in kept and kept <= {"old", "new"}
        assert not [place for place in tmp_path.iterdir() if "draft" in place.name]
    assert number > 5


KILLS = sized(10, 40)


def test_killed_at_random_moments(tmp_path, capsys):
    """The command killed after a random time: half of the times at any moment, half after a random step of writing.

    The time of the second half counts from the step, because writing takes a hundredth of the command's time.
    """
    manifest, before = source_and_app(tmp_path)
    change(before / "src/main.c", "/*\n", "/* mine */\n/*\n")
    change(before / "prj.conf", "4096", "8192")
    (before / "README.md").unlink()
    change(manifest, "model: minimal", "model: other\nboards: [qemu_cortex_m3]")
    expected = copy(before, tmp_path / "expected")
    main(["update", str(expected)])
    old, new = digest(before), digest(expected)
    assert old != new

    def timed():
        begin = time.monotonic()
        steps = []
        disk._step = lambda _: steps.append(time.monotonic() - begin)
        main(["update", str(copy(before, tmp_path / "timed"))])
        (tmp_path / "times").write_text(f"{len(steps)} {steps[0]} {time.monotonic() - begin}")

    assert child(timed) == 0
    steps, first, last = map(float, (tmp_path / "times").read_text().split())
    chance = random.Random(5)
    found = {"old": 0, "new": 0, "not killed": 0}
    for number in itertools.count():
        if found["old"] and found["new"] and found["old"] + found["new"] >= KILLS:
            break
        assert number < 10 * KILLS, found
        app = copy(before, tmp_path / "victim")
        at = chance.randint(1, int(steps)) if number % 2 else 0
        moment = max(chance.uniform(0, (last - first) / steps if at else last), 1e-4)

        def doomed(app=app, at=at, moment=moment):
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            if at:
                at_step(at, lambda _: signal.setitimer(signal.ITIMER_REAL, moment))
            else:
                signal.setitimer(signal.ITIMER_REAL, moment)
            main(["update", str(app)])

        if child(doomed) == 0:
            found["not killed"] += 1
            continue
        again = copy(app, tmp_path / "again")
        recover(app)
        assert digest(app) in (old, new), (at, moment)
        found["new" if digest(app) == new else "old"] += 1
        assert main(["update", str(again)]) == 0  # one more call
        assert digest(again) == new, (at, moment)
    capsys.readouterr()
    print(found, f"writing from {first:.3f} to {last:.3f} s")
