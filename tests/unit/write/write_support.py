# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the writing layer."""

import errno
import itertools
import os
import shutil
import signal
import stat
import warnings
from pathlib import Path, PurePosixPath

from campaign import sized
from opwest.base.diagnostics import OpwestError
from opwest.base.files import ProjectFile
from opwest.project import disk
from opwest.project.writer import WriteResult, recover, write_project

RECORD = {"manifests": {"models/digits.yaml": "aa"}, "options": {"runtime": "vendored"}}


def gen(path, content="generated\n"):
    return ProjectFile(PurePosixPath(path), content.encode(), "generator")


def user(path, content="yours\n"):
    return ProjectFile(PurePosixPath(path), content.encode(), "user")


def write(directory, *files, record=RECORD) -> WriteResult:
    return write_project(directory, files, record)


def tree(directory: Path, *, own=True):
    """Return the content of a directory without the mutex: {path: content, link target, or None for a directory}."""
    found = {}
    if not directory.is_dir():
        return found
    for place in sorted(directory.rglob("*")):
        path = place.relative_to(directory).as_posix()
        if path == ".opwest/mutex" or (not own and path.split("/")[0] == ".opwest"):
            continue
        if place.is_symlink():
            found[path] = str(place.readlink())
        else:
            found[path] = None if place.is_dir() else place.read_bytes()
    return found


def times(directory: Path):
    """Return inodes, sizes, modes and times of files and directories, which change with any access for writing.

    Without `.opwest` itself, in which each run creates and deletes the mutex.
    """
    places = [directory, *(place for place in directory.rglob("*") if place.name != ".opwest")]
    return {
        str(place): (s.st_ino, s.st_size, s.st_mode, s.st_mtime_ns, s.st_ctime_ns)
        for place in places
        for s in [place.lstat()]
    }


def refusal(call, *arguments) -> str:
    """Return the text of the OpwestError that `call` raises."""
    try:
        call(*arguments)
    except OpwestError as fault:
        return str(fault)
    raise AssertionError("not rejected")


def child(work) -> int:
    """Run `work` in a child process; return its exit code, negative for a signal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12+: pytest-xdist has a thread
        process = os.fork()
    if process == 0:
        code = 99
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def at_step(number, act):
    """Call `act(name)` at the step `number` (from 1) of this process; return the list of steps."""
    seen = []

    def step(name):
        seen.append(name)
        if len(seen) == number:
            act(name)

    disk._step = step
    return seen


def killed_at(number, work) -> bool:
    """Run `work` in a child that is killed at the step `number`; return False if it ended before."""

    def doomed():
        at_step(number, lambda _: os.kill(os.getpid(), signal.SIGKILL))
        work()

    code = child(doomed)
    assert code in (0, -signal.SIGKILL), code
    return code != 0


def mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


# An old and a new project that differ in everything that can differ.

OLD = (
    gen("keep/same.c"),
    gen("keep/changed.c", "old\n"),
    gen("gone/deep/er.c", "old\n"),
    gen("was_file", "old\n"),
    gen("was_folder/x.c", "old\n"),
    user("src/main.c"),
)
NEW = (
    gen("keep/same.c"),
    gen("keep/changed.c", "new\n"),
    gen("added/deep/er.c", "new\n"),
    gen("was_file/x.c", "new\n"),
    gen("was_folder", "new\n"),
    user("src/main.c", "never written\n"),
    user("src/other.c"),
)
OLD_RECORD, NEW_RECORD = {"generation": 1}, {"generation": 2}


def generate_old(app):
    write(app, *OLD, record=OLD_RECORD)


def generate_new(app):
    write(app, *NEW, record=NEW_RECORD)


def copy(source: Path, target: Path) -> Path:
    """Replace a directory by a copy; without a source, remove it."""
    shutil.rmtree(target, ignore_errors=True)
    if source.exists():
        shutil.copytree(source, target, symlinks=True)
    return target


def is_old(found, old):
    """Whether `found` is the old tree; a first generation may have created its directory."""
    return found == old or (not old and found == {".opwest": None})


def kill_at_every_step(before, run, old, new, work):
    """Kill `run` at each of its steps in a copy of `before`; return what the recovery did after each kill.

    The next run completes the new project. Recovery leaves the old or the new one, also if it is killed at its steps.
    """
    outcomes, number, chained = [], 0, 0
    while True:
        number += 1
        app = copy(before, work / "app")
        if not killed_at(number, lambda app=app: run(app)):
            break
        again = copy(app, work / "again")
        run(again)
        assert tree(again) == new, number
        chain = copy(app, work / "chain") if number % sized(8, 1) == 0 else None
        step = 1
        while chain and killed_at(step, lambda chain=chain: recover(chain)):
            step += 1
        chained += step - 1
        outcomes.append(recover(app))
        found = tree(app)
        assert chain is None or tree(chain) == found, number
        # Once the journal exists, the new project is completed.
        assert found == new if "rolled forward" in outcomes else is_old(found, old), number
        assert recover(app) == "nothing"
    assert tree(app) == new
    print(f"{number - 1} crash points, and {chained} kills of their recovery")
    assert [outcome for outcome, _ in itertools.groupby(outcomes)] == [
        *("nothing", "rolled back", "rolled forward", "nothing")
    ]
    return outcomes


def fail_at_every_step(before, run, old, new, work):
    """Let each step of `run` fail once in a copy of `before`; return the number of steps.

    The project is unchanged, with an error, or it was already complete. The next run completes the new project.
    """

    def fail(name):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name.split(" ", 1)[1])

    number = 0
    while True:
        number += 1
        app = copy(before, work / "app")
        seen = at_step(number, fail)
        try:
            text = refusal(run, app)
        except AssertionError:  # only the stage remains
            assert tree(app, own=False) == {path: content for path, content in new.items() if path[:7] != ".opwest"}
        else:
            assert "error: cannot write the project: No space left on device\n" in text
            assert text.endswith("hint: the project is unchanged; free some space")
            assert is_old(tree(app), old), (number, seen[number - 1])
        at_step(0, None)
        run(app)
        assert tree(app) == new, number
        if len(seen) < number:
            return number - 1
