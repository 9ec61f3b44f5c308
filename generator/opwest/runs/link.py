# SPDX-License-Identifier: Apache-2.0
"""The host's interface to the service of an image (CONFIG_OPWEST_SERVICE), independent of the transport."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

from opwest.base.diagnostics import Diagnostic, OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.model.types.dtypes import DTYPES
from opwest.runs.profile import Profile

VERSION = 1
"""OPWEST_SERVICE_VERSION of the runtime."""

NO_SERVICE_HINT = "omit --no-build and --no-flash to build and start an image with the service"

REBUILD_HINT = "omit --no-build and --no-flash"
"""For an image of another version of the application."""

FOREIGN_HINT = "the image may be from another version of opwest, or the device may belong to another program"

LOCKED_HINT = "the application unlocks it with opwest_service_permit(true) (CONFIG_OPWEST_SERVICE_LOCKED)"


class LinkError(Exception):
    """An error of the image or of the connection to it."""

    def __init__(self, message: str, hint: str | None = None, causes: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.causes = tuple(causes)

    @property
    def for_user(self) -> OpwestError:
        """The error with its causes, which precede it."""
        return OpwestError([*self.causes, Diagnostic("error", self.message, hint=self.hint)])


class StoppedError(LinkError):
    """The image has stopped after a fatal error."""


class LostError(LinkError):
    """The device disappeared: the board was unplugged, it restarts, or the emulator exited."""


class UnknownCommandError(LinkError):
    """The shell of the image does not have the command."""


class ModelError(LinkError):
    """A model failed; the connection works."""


@dataclass(frozen=True)
class Tensor:
    """A tensor as described by the image: an input, output, buffer (in the workspace) or arguments; `size` in bytes."""

    name: str
    role: str
    dtype: str
    size: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Served:
    """A model of the image; its inputs precede its outputs, then those in the workspace (CONFIG_OPWEST_CHECK_STEPS),
    then the memory for arguments (CONFIG_OPWEST_SERVICE_CALL)."""

    index: int
    name: str
    tensors: tuple[Tensor, ...]


class Action(IntEnum):
    """An action on a model: enum opwest_service_action of the runtime."""

    OPEN = 0
    RUN = 1
    CLOSE = 2


@dataclass(frozen=True)
class Report:
    """The result of an action: struct opwest_service_report of the runtime."""

    result: int
    error: str
    code: int
    hook: str
    device: str
    operator: str
    step: int
    nanoseconds: int
    stopped: bool = False
    """Whether the run has stopped at a point: the other fields are not set."""


class Link(Protocol):
    """A connection to an image. Every method raises LinkError on failure."""

    device: str
    """The serial device, as shown to the user."""

    def describe(self) -> list[Served]:
        """Wait for the image and return its models."""

    def act(self, model: Served, action: Action) -> Report:
        """Open, run or close a model."""

    def run_until(self, model: Served, point: int) -> Report:
        """Run a model until a point ends, or continue a stopped run; point 0 is the end of the run."""

    def call(self, model: Served, operator: int, device: int) -> Report:
        """Call an operator of an open model on the written argument memory; `device` may be NO_DEVICE."""

    def write(self, model: Served, tensor: int, offset: int, data: bytes) -> int:
        """Write `data` to a tensor, as far as one request holds it; return the number of bytes written."""

    def read(self, model: Served, tensor: int, offset: int) -> bytes:
        """Return the bytes of a tensor from `offset` on, as many as one response holds."""

    def measures(self, model: Served) -> Profile:
        """Return the measurements of a model's run since the model was opened."""

    def disconnect(self) -> None:
        """Close the device."""


def check_version(version: int, device: str) -> None:
    """Raise LinkError unless the service has the expected version."""
    if version != VERSION:
        text = f"the service of the image on '{device}' has version {version}, expected {VERSION}"
        raise LinkError(text, "generate and build the application again with this opwest")


def check_tensor(tensor: Tensor, device: str) -> None:
    """Raise LinkError if dtype, shape and size of a tensor contradict each other."""
    known = DTYPES.get(tensor.dtype)
    if known is None or min(tensor.shape, default=1) < 1 or math.prod(tensor.shape) * known.size != tensor.size:
        seen = f"{tensor.dtype} {list(tensor.shape)} of {counted(tensor.size, 'byte')}"
        raise LinkError(
            f"the image on '{device}' describes an inconsistent tensor {tensor.name!r}: {seen}",
            "check the connection for lost characters; the image may be from another version of opwest",
        )


_STOPPED = re.compile(rb"opwest: fatal error \d{1,10}: ([ -~]{1,40}) in thread ([ -~]{1,60})\r?\n")
"""The message of zephyr_module/src/port_zephyr.c."""
_STACKS = {"opwest": "CONFIG_OPWEST_SERVICE_STACK_SIZE", "main": "CONFIG_MAIN_STACK_SIZE"}
"""The option with the size of a thread's stack; the thread of the service runs the models."""


def raise_if_stopped(console: bytes, awaited: str) -> None:
    """Raise StoppedError if the output of an image contains the message of a fatal error."""
    match = _STOPPED.search(console)
    if match is None:
        return
    what, thread = match[1].decode(), match[2].decode()
    hint = None
    if what == "stack overflow":
        hint = f"raise {_STACKS.get(thread, 'the size of its stack')}"
        if thread == "opwest":
            hint += "; operators run on this stack, and `stack:` of an operator is the most bytes that it needs"
    raise StoppedError(f"the image stopped while the host waited for {awaited}: {what} in thread '{thread}'", hint)


def printable(data: bytes, most: int = 60) -> str:
    """Return the last line received from a device, with at most `most` printable characters."""
    lines = [line.strip() for line in data.decode(errors="replace").splitlines() if line.strip()]
    text = lines[-1] if lines else ""
    text = "".join(c if c.isprintable() else "." for c in text)
    return text if len(text) <= most else "…" + text[1 - most :]
