# SPDX-License-Identifier: Apache-2.0
"""Child processes: groups that end together, and the description of how a process ended."""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opwest.base import timing
from opwest.base.commands import module

_killpg: Any = getattr(os, "killpg", None)
"""Absent on Windows."""
_ENDINGS = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
_SECONDS = 3.0
_STATUS_OF_WINDOWS = 0xC0000000
"""Exit codes of Windows from here on are NTSTATUS values of exceptions ([MS-ERREF] 2.3)."""


def run_tool(
    command: Sequence[str], folder: Path | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program of a toolchain in a directory; return its exit code and its output as text.

    Raises TimeoutExpired after `seconds`.
    """
    with timing.command(command):
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            cwd=folder,
            timeout=seconds,
        )


def first_lines(text: str, count: int = 20) -> str:
    """Return the first lines of the output of a program."""
    lines = text.strip().splitlines()
    return "\n".join(lines[:count] + (["..."] if len(lines) > count else []))


def group() -> dict[str, Any]:
    """Return the arguments of Popen that start a process with a group of its own, which `end_group` ends."""
    if _killpg is not None:
        return {"start_new_session": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def end_group(process: subprocess.Popen[Any]) -> None:
    """End a process that was started with `group()` and its descendants, and wait for the process."""
    if _killpg is not None:
        for how in _ENDINGS:
            try:
                _killpg(process.pid, how)
                process.wait(_SECONDS)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
    elif process.poll() is None:
        kill_group(process)
    process.wait()


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process that was started with `group()` and its descendants. Only on Windows, wait for it.

    Raises OSError if it has ended and its group is empty.
    """
    if _killpg is not None:
        _killpg(process.pid, _ENDINGS[-1])
        return
    try:  # Windows has no signals: taskkill ends a process and its descendants, without a request to exit
        subprocess.run(
            ["taskkill", "/PID", str(process.pid), "/T", "/F"], capture_output=True, check=False, timeout=_SECONDS
        )
        process.wait(_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()


def signal_name(code: int) -> str | None:
    """Return the name of the signal or the exception that ended a process with this exit code; None without one."""
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return f"exception 0x{code:08X}" if code >= _STATUS_OF_WINDOWS else None


def exceeded_time(code: int) -> bool:
    """Whether the limit of the processor time ended a process with this exit code."""
    return code == -getattr(signal, "SIGXCPU", 0) and code != 0


_resource = module("resource")


def limits_time() -> bool:
    """Whether the system can limit the processor time of a process; otherwise its parent limits the elapsed time."""
    return _resource is not None


def limit_process(memory: int) -> None:
    """Limit the address space of this process and disable core dumps."""
    if _resource is not None:
        _lower(_resource.RLIMIT_AS, memory)
        _lower(_resource.RLIMIT_CORE, 0)


def limit_next_request(seconds: float) -> None:
    """Extend the processor time limit of this process by `seconds`."""
    if _resource is not None:
        usage = _resource.getrusage(_resource.RUSAGE_SELF)
        _lower(_resource.RLIMIT_CPU, math.ceil(usage.ru_utime + usage.ru_stime + seconds))


def _lower(kind: int, soft: int) -> None:
    """Set the soft limit, at most the hard one; ignore limits that the system does not support."""
    try:
        _, hard = _resource.getrlimit(kind)
        _resource.setrlimit(kind, (soft if hard == _resource.RLIM_INFINITY else min(soft, hard), hard))
    except (OSError, ValueError):
        pass
