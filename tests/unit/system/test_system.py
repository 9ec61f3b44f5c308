# SPDX-License-Identifier: Apache-2.0
"""Locks, groups of processes and limits, also by the modules and programs of Windows, which are replaced here."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from opwest.importers import child as importing
from opwest.system import files, limits, locks, module, processes
from requirements_support import skip_here


class Msvcrt:
    """msvcrt.locking() of Windows, whose locks belong to handles and are mandatory."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        self.held: dict[int, int] = {}

    def locking(self, handle: int, mode: int, count: int) -> None:
        assert count == 1 and os.lseek(handle, 0, os.SEEK_CUR) == 0
        inode = os.fstat(handle).st_ino
        if mode == self.LK_UNLCK:
            if self.held.get(inode) != handle:
                raise PermissionError(13, "Permission denied")
            del self.held[inode]
        elif inode in self.held:
            raise PermissionError(13, "Permission denied")
        else:
            self.held[inode] = handle


@pytest.fixture(params=["fcntl", "msvcrt"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "msvcrt":
        monkeypatch.setattr(locks, "_fcntl", None)
        monkeypatch.setattr(locks, "_msvcrt", Msvcrt())
    elif module("fcntl") is None:
        skip_here("not a POSIX system")
    return str(request.param)


def test_lock_is_exclusive(implementation: str, tmp_path: Path) -> None:
    first = os.open(tmp_path / "mutex", os.O_RDWR | os.O_CREAT)
    second = os.open(tmp_path / "mutex", os.O_RDWR)
    try:
        assert locks.lock(first)
        assert not locks.lock(second)
        locks.unlock(first)
        os.close(first)
        assert locks.lock(second)
        locks.unlock(second)
        locks.unlock(second)  # nothing to release
    finally:
        os.close(second)


def test_other_error_of_a_lock(implementation: str, tmp_path: Path) -> None:
    file = os.open(tmp_path / "mutex", os.O_RDWR | os.O_CREAT)
    os.close(file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        locks.lock(file)


def test_module_that_the_system_lacks() -> None:
    assert module("no_such_module") is None and module("os") is os


SLEEPS = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {!r}]); time.sleep(60)"
GRANDCHILD = "import os, time; open({!r}, 'w').write(str(os.getpid())); time.sleep(60)"


def is_alive(process: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


def test_group_ends_with_its_descendants(tmp_path: Path) -> None:
    if not Path("/proc/self/stat").exists():
        skip_here("processes are observed in /proc")
    place = tmp_path / "pid"
    command = [sys.executable, "-c", SLEEPS.format(GRANDCHILD.format(str(place)))]
    process = subprocess.Popen(command, **processes.group())
    end = time.monotonic() + 20
    while (not place.exists() or not place.read_text(encoding="utf-8")) and time.monotonic() < end:
        time.sleep(0.02)
    grandchild = int(place.read_text(encoding="utf-8"))
    assert is_alive(grandchild)
    processes.end_group(process)
    assert process.returncode is not None
    while is_alive(grandchild) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_alive(grandchild)
    processes.end_group(process)  # has ended


@pytest.mark.parametrize("works", [True, False])
def test_group_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool) -> None:
    """taskkill ends the tree; without it, at least the process itself ends."""
    monkeypatch.setattr(processes, "_killpg", None)
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0, raising=False)
    assert processes.group() == {"creationflags": 0}
    if works:
        program = tmp_path / "taskkill"
        program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\nkill -9 "$2"\n', encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH'] if works else ''}")
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], **processes.group())
    processes.end_group(process)
    assert process.returncode is not None and process.returncode != 0
    if works:
        assert (tmp_path / "words").read_text(encoding="utf-8") == f"/PID {process.pid} /T /F\n"
    processes.end_group(process)


@pytest.mark.parametrize(
    ("code", "name"),
    [(0, None), (1, None), (-11, "SIGSEGV"), (-250, "signal 250"), (0xC0000005, "exception 0xC0000005")],
)
def test_signals_and_exceptions(code: int, name: str | None) -> None:
    assert processes.signal_name(code) == name
    assert not processes.exceeded_time(code)


def test_file_that_another_program_has_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def busy() -> None:
        attempts.append(1)
        if len(attempts) < 3:
            raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError):
        files.retried(busy)
    assert len(attempts) == 1, "other systems do not refuse it: the error is final"
    attempts.clear()
    monkeypatch.setattr(files, "_CAN_BE_IN_USE", True)
    files.retried(busy)
    assert len(attempts) == 3
    monkeypatch.setattr(files, "_PAUSES", (0.0,))
    attempts.clear()
    with pytest.raises(PermissionError):
        files.retried(busy)


def test_limits_without_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_resource", None)
    assert not limits.limits_time()
    limits.limit_process(1)
    limits.limit_next_request(0.0)


def test_import_is_ended_by_its_parent_where_it_cannot_limit_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "limits_time", lambda: False)
    monkeypatch.setattr(importing, "SECONDS", 0.2)
    code = "import time; time.sleep(60)"
    with (
        subprocess.Popen([sys.executable, "-c", code], text=True, encoding="utf-8") as process,
        importing._time_limit(process) as is_expired,
    ):
        process.wait(20)
        assert is_expired() and process.returncode != 0
        assert importing._failure(process.returncode, is_expired()).startswith("took more than")
