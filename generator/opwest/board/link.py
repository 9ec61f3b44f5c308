# SPDX-License-Identifier: Apache-2.0
"""What a host asks of the service in an image (CONFIG_OPWEST_SERVICE), whatever carries it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from opwest.host.profile import Profile
from opwest.model.dtypes import DTYPES

VERSION = 1
"""OPWEST_SERVICE_VERSION of the runtime."""

NO_SERVICE_HINT = "leave out --no-build and --no-flash: opwest builds and starts an image that has it"


class LinkError(Exception):
    """The image, or the way to it, is at fault."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ModelError(LinkError):
    """A model failed; the connection is good."""


@dataclass(frozen=True)
class Tensor:
    """An input or output, as the image describes it."""

    name: str
    role: str
    dtype: str
    size: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Served:
    """A model of the image; the inputs come first."""

    index: int
    name: str
    tensors: tuple[Tensor, ...]


class Action(IntEnum):
    """What can be asked of a model: enum opwest_service_action of the runtime."""

    OPEN = 0
    RUN = 1
    CLOSE = 2


@dataclass(frozen=True)
class Report:
    """What came of an action; struct opwest_service_report of the runtime."""

    result: int
    error: str
    code: int
    hook: str
    device: str
    operator: str
    step: int
    nanoseconds: int

    def fault(self, model: str, action: Action) -> str:
        """Return a sentence about a failure."""
        text = f"{model}_{action.name.lower()} returned {self.error or self.result}"
        if self.step >= 0:
            text += f" in step {self.step} ({self.operator})"
        if self.hook:
            text += f": {self.hook} of device {self.device} returned {self.code}"
        elif self.code:
            text += f", whose operator returned {self.code}"
        return text


class Link(Protocol):
    """A connection to an image. Whatever goes wrong is a LinkError."""

    device: str
    """The serial device, as the user knows it."""

    def describe(self) -> list[Served]:
        """Wait for the image and return its models."""

    def act(self, model: Served, action: Action) -> Report:
        """Open, run or close a model."""

    def write(self, model: Served, tensor: int, offset: int, data: bytes) -> int:
        """Write the first bytes of `data` to a tensor, as many as go in one request; return how many."""

    def read(self, model: Served, tensor: int, offset: int) -> bytes:
        """Return bytes of a tensor from `offset` on, as many as come in one answer."""

    def measures(self, model: Served) -> Profile:
        """Return what the points of a model's run took since it was opened."""

    def disconnect(self) -> None:
        """Let go of the device."""


def check_version(version: int, device: str) -> None:
    """Refuse a service that speaks otherwise."""
    if version != VERSION:
        raise LinkError(
            f"the service of the image on {device} has version {version}, this opwest expects {VERSION}",
            "generate the application again with this opwest, and build it again",
        )


def check_tensor(tensor: Tensor, device: str) -> None:
    """Refuse a tensor whose parts contradict each other."""
    known = DTYPES.get(tensor.dtype)
    if known is None or min(tensor.shape, default=1) < 1 or math.prod(tensor.shape) * known.size != tensor.size:
        seen = f"{tensor.dtype} {list(tensor.shape)} of {tensor.size} bytes"
        raise LinkError(
            f"the image on {device} has a tensor {tensor.name!r} that can't be: {seen}",
            "the connection loses characters, or the image is of another version of opwest",
        )


def printable(data: bytes, most: int = 60) -> str:
    """Return the end of what came from a device, so that it can be shown."""
    lines = [line.strip() for line in data.decode(errors="replace").splitlines() if line.strip()]
    text = lines[-1] if lines else ""
    text = "".join(c if c.isprintable() else "." for c in text)
    return text if len(text) <= most else "…" + text[1 - most :]
