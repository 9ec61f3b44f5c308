# SPDX-License-Identifier: Apache-2.0
"""The parent's side of the child process that runs LLVM.

LLVM aborts on many invalid inputs, so the end of a child is an ordinary result: the current request
gets an error, and a new child processes the others.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from opwest.base import timing
from opwest.base.frozen_dataclass import dataclass
from opwest.base.processes import exceeded_time, signal_name
from opwest.objects.llvm.facts import LlvmError, printable

_LENGTHS = struct.Struct(">QQ")
MAX_PART = 2 << 30
MEMORY = 4 << 30
"""Bytes of address space of a child; enforced where the system can."""
SECONDS = 120.0
"""The limit of one request: of the clock, and of the processor."""


class BrokenStreamError(Exception):
    """The peer closed the stream or sent invalid data."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One request or response."""

    header: dict[str, Any]
    blob: bytes = b""


def write_frame(stream: BinaryIO, frame: Frame) -> None:
    """Write one frame."""
    header = json.dumps(frame.header).encode("ascii")
    stream.write(_LENGTHS.pack(len(header), len(frame.blob)))
    stream.write(header)
    stream.write(frame.blob)
    stream.flush()


def read_frame(stream: BinaryIO) -> Frame | None:
    """Return the next frame; None at the end of the stream; raise BrokenStreamError."""
    lengths = stream.read(_LENGTHS.size)
    if not lengths:
        return None
    if len(lengths) != _LENGTHS.size:
        raise BrokenStreamError
    header_size, blob_size = _LENGTHS.unpack(lengths)
    if max(header_size, blob_size) > MAX_PART:
        raise BrokenStreamError
    header, blob = stream.read(header_size), stream.read(blob_size)
    if len(header) != header_size or len(blob) != blob_size:
        raise BrokenStreamError
    try:
        value = json.loads(header)
    except ValueError as fault:
        raise BrokenStreamError from fault
    if not isinstance(value, dict):
        raise BrokenStreamError
    return Frame(value, blob)


_KEPT_VARIABLES = (
    *"LD_LIBRARY_PATH DYLD_LIBRARY_PATH PYTHONHOME SYSTEMROOT TEMP TMP TMPDIR".split(),
    "COVERAGE_PROCESS_CONFIG",  # the coverage of the tests includes the child
)
_KEPT_STDERR = 1 << 16
_USEFUL = re.compile(r"LLVM ERROR|Assertion|\berror:|bad_alloc|UNREACHABLE|MemoryError|not recognized")
_HINT = "compile the operators again, or check the file with 'opt -passes=verify'"


@dataclass(frozen=True, slots=True)
class Request:
    """One piece of work for a child."""

    header: dict[str, Any]
    blob: bytes
    doing: str
    """The activity for error messages: `reading conv.bc`."""


def run(requests: Sequence[Request]) -> list[Frame | LlvmError]:
    """Return the response or the error of each request."""
    results: list[Frame | LlvmError] = []
    child: _Child | None = None
    try:
        for request in requests:
            if child is None:
                child = _Child()
            answer = child.respond(request)
            if child.ended:
                child.close()
                child = None
            results.append(answer)
    finally:
        if child is not None:
            child.close()
    return results


def _environment() -> dict[str, str]:
    """Return the child's environment: Python's module path, without variables that change its behaviour."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "LC_ALL": "C", "PYTHONUTF8": "1"}


class _Child:
    """One child process, which answers requests until it ends."""

    def __init__(self) -> None:
        self.ended = False
        self._answers: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._stderr = bytearray()
        # -P: a module in the working directory must not replace one of the child.
        command = [sys.executable, "-P", "-m", "opwest.objects.llvm.worker", str(MEMORY), str(SECONDS)]
        timing.started(command)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
        )
        assert self._process.stdout and self._process.stderr and self._process.stdin
        self._stdin: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._readers = (
            threading.Thread(target=self._read_answers, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True),
        )
        for reader in self._readers:
            reader.start()

    def _read_answers(self, stream: BinaryIO) -> None:
        with contextlib.suppress(BrokenStreamError, OSError, ValueError, MemoryError):
            while (frame := read_frame(stream)) is not None:
                self._answers.put(frame)
        self._answers.put(None)

    def _read_stderr(self, stream: BinaryIO) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := stream.read1(1 << 14):  # type: ignore[attr-defined]
                self._stderr += chunk
                del self._stderr[:-_KEPT_STDERR]

    def respond(self, request: Request) -> Frame | LlvmError:
        """Return the response to a request, or its error."""
        timer = threading.Timer(SECONDS, self._process.kill)
        timer.daemon = True
        started = time.monotonic()
        timer.start()
        try:
            with contextlib.suppress(OSError, ValueError):  # after its end, the reader returns None
                write_frame(self._stdin, Frame(request.header, request.blob))
            answer = self._answers.get()
        finally:
            timer.cancel()
        if answer is None:
            return self._failure(request, timed_out=time.monotonic() - started >= SECONDS)
        fault = answer.header.get("fault")
        if isinstance(fault, list) and len(fault) == 3:
            return LlvmError(printable(str(fault[0])), *(None if p is None else printable(str(p)) for p in fault[1:]))
        return answer

    def _failure(self, request: Request, *, timed_out: bool) -> LlvmError:
        """Return the error for a child that ended without a response."""
        self.ended = True
        self._process.kill()
        code = self._process.wait()
        for reader in self._readers:
            reader.join(timeout=5)
        expected = "IR that LLVM can read and compile"
        if timed_out or exceeded_time(code):
            took = f"took more than {SECONDS:g} s"
            return LlvmError(f"LLVM {took} {request.doing}", expected, _HINT)
        line = useful_line(bytes(self._stderr).decode("utf-8", "replace"))
        by = signal_name(code)
        how = f"ended with {by}" if by else "failed"
        return LlvmError(f"LLVM {how} while {request.doing}{f': {line}' if line else ''}", expected, _HINT)

    def close(self) -> None:
        """End the process and wait for it."""
        with contextlib.suppress(OSError, ValueError):
            self._stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(timeout=5)
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()


def useful_line(stderr: str) -> str:
    """Return the most specific line of LLVM's error output, without paths of LLVM's build machine."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if not lines:
        return ""
    line = next((line for line in reversed(lines) if _USEFUL.search(line)), lines[-1])
    assertion = line.find("Assertion ")
    return printable(line[assertion if assertion > 0 else 0 :][:300])
