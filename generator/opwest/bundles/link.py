# SPDX-License-Identifier: Apache-2.0
"""The host's interface to the bundles of an image (CONFIG_OPWEST_BUNDLE_SERVICE), independent of the transport.

A job is requested with the same session and number until its end: repeated, lost and late requests and responses are
harmless. A part of an upload changes nothing unless it is the next one.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Protocol, TypeVar

from opwest.base.diagnostics import printable
from opwest.base.frozen_dataclass import dataclass
from opwest.runs.link import FOREIGN_HINT, LinkError

VERSION = 1
"""OPWEST_BUNDLE_SERVICE_VERSION of the runtime."""
NO_SLOT = 255
CHECKED_DIGEST = 8
"""Bytes of the digest in the checksum of a part."""
RUNNING, DONE, REFUSED = range(3)
"""The states of a job."""

_T = TypeVar("_T")

NO_SERVICE_HINT = "build the image with CONFIG_OPWEST_BUNDLE_SERVICE=y"
SILENT_HINT = "check that the device is the board's and that its image runs, with CONFIG_OPWEST_BUNDLE_SERVICE=y"
NOT_SERVED_HINT = "the application calls opwest_bundles_serve() after opwest_bundles_start()"


class Job(IntEnum):
    """enum opwest_bundle_job of the runtime."""

    STATE = 0
    LIST = 1
    BEGIN = 2
    INSTALL = 3
    CONFIRM = 4
    ROLL_BACK = 5
    STEPS = 6
    PART = 7

    @property
    def title(self) -> str:
        """Its name as shown to the user."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Request:
    """A job with its arguments; `session` and `number` identify it."""

    job: Job
    session: int
    number: int
    polls: bool = False
    """Whether only the result of the job is requested."""
    slot: int | None = None
    size: int = 0
    digest: bytes = b""
    point: int = 0
    buffer: int = 0
    offset: int = 0
    data: bytes = b""


class Fields:
    """The fields of a response, checked on access: numbers and bytes may be text."""

    def __init__(self, content: Mapping[str, object], device: str) -> None:
        self._content = content
        self._device = device

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def number(self, key: str) -> int:
        """Return an integer."""
        return self._value(key, int, int)

    def text(self, key: str) -> str:
        """Return a text, with printable characters only."""
        return self._value(key, str, printable)

    def bytes(self, key: str) -> bytes:
        """Return a byte string."""
        return self._value(key, bytes, bytes.fromhex)

    def _value(self, key: str, kind: type[_T], from_text: Callable[[str], _T]) -> _T:
        value = self._content.get(key)
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                return from_text(value)
        elif isinstance(value, kind) and not isinstance(value, bool):
            return value
        raise LinkError(f"{self._device}: missing or invalid {key!r} in a response about bundles", FOREIGN_HINT)


@dataclass(frozen=True)
class Info:
    """What the firmware supports."""

    format: int
    """The version of the format of bundles that it reads."""
    slots: int
    part: int
    """The largest part of a tensor in a job, bytes."""


class BundleLink(Protocol):
    """A connection to an image. Methods return None without a usable response, and raise LinkError otherwise.

    LostError: the device disappeared. Every method sends one request.
    """

    device: str
    """The serial device, as shown to the user."""

    @property
    def space(self) -> int:
        """The largest part of a file in a request, bytes."""

    def info(self, seconds: float) -> Info | None:
        """Return what the firmware supports; None also before the application serves bundles."""

    def job(self, request: Request, seconds: float) -> Fields | None:
        """Request a job."""

    def part(self, offset: int, data: bytes, check: int, seconds: float) -> Fields | None:
        """Send a part of a file."""

    def failure(self, awaited: str, seconds: float) -> LinkError:
        """Return the error for a missing response: what was received instead."""

    def disconnect(self) -> None:
        """Close the device."""


def checksum(digest: bytes, offset: int, data: bytes) -> int:
    """Return the CRC-32 that detects damaged parts and parts of another file."""
    return zlib.crc32(data, zlib.crc32(digest[:CHECKED_DIGEST] + struct.pack("<I", offset)))


def read_info(fields: Fields, device: str) -> Info:
    """Return what the firmware supports. Raises LinkError for another version of the service."""
    version = fields.number("service")
    if version != VERSION:
        text = f"the bundle service of the image on '{device}' has version {version}, expected {VERSION}"
        raise LinkError(text, "use the opwest that the image was built with")
    return Info(fields.number("format"), fields.number("slots"), fields.number("part"))


def not_served(device: str) -> LinkError:
    """Return the error for an application that does not serve bundles."""
    return LinkError(f"the application on '{device}' does not serve its bundles", NOT_SERVED_HINT)
