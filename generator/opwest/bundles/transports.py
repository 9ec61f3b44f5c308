# SPDX-License-Identifier: Apache-2.0
"""Bundles over Zephyr's shell: `opwest bundle` commands, with a checksum in each command and response line."""

from __future__ import annotations

import base64
import re
import time
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from smp.error import MGMT_ERR
from smp.header import OP

from opwest.bundles.link import NO_SERVICE_HINT, SILENT_HINT, Fields, Info, Job, Request, not_served, read_info
from opwest.runs.link import LinkError, LostError, UnknownCommandError
from opwest.runs.places import Place
from opwest.runs.shell import ShellConnection
from opwest.runs.smp import PARAMETERS, SmpConnection, error_name

_LINE = re.compile(r"(bundle(?: [^ ]+)*) \*([0-9a-f]{8})")


class ShellBundleLink(ShellConnection):
    """The shell of an image with the service of bundles. Implements BundleLink."""

    def __init__(self, device: str, timeout: float, baud: int | None = None) -> None:
        super().__init__(device, timeout, baud)
        self.space = 1
        self._unknown: UnknownCommandError | None = None
        self._is_refused = False

    def info(self, seconds: float) -> Info | None:
        """Return what the firmware supports; None also before the application serves bundles."""
        fields = self._ask("info", seconds, "service")
        if fields is None:
            return None
        info = read_info(fields, self.device)
        self.space = max(1, fields.number("chunk"))
        return info

    def job(self, request: Request, seconds: float) -> Fields | None:
        """Request a job."""
        words = [request.job.name.lower().replace("_", "")]
        if request.job == Job.BEGIN:
            words += [str(request.size), request.digest.hex()]
        if request.slot is not None:
            words.append(str(request.slot))
        if request.job == Job.PART:
            words += [str(request.point), str(request.buffer), str(request.offset), _encoded(request.data)]
        mark = f"@{request.session:x}.{request.number:x}.{int(request.polls)}."
        checked = "".join(f"{word} " for word in words) + mark
        words.append(f"{mark}{zlib.crc32(checked.encode()):08x}")
        return self._ask(" ".join(words), seconds, f"session={request.session} number={request.number}")

    def part(self, offset: int, data: bytes, check: int, seconds: float) -> Fields | None:
        """Send a part of a file."""
        return self._ask(f"write {offset} {_encoded(data)} {check:08x}", seconds, f"at={offset}")

    def failure(self, awaited: str, seconds: float) -> LinkError:
        """Return the error for a missing response: what was received instead."""
        if self._is_refused:
            return not_served(self.device)
        if self._unknown is not None:
            text = f"the image on '{self.device}' does not accept bundles: its shell has no command 'opwest bundle'"
            return LinkError(text, NO_SERVICE_HINT)
        return LinkError(self.timeout_error(awaited, round(seconds)).message, SILENT_HINT)

    def _ask(self, command: str, seconds: float, begin: str) -> Fields | None:
        """Send a command; return the fields of its response, None for a damaged one or a damaged command.

        `begin` are the first fields, which a late response to another command does not have.
        """
        start = time.monotonic()
        expected = re.compile(rf"bundle (?:{begin}|refused)\b.*")
        try:
            lines = self.ask(f"bundle {command}", seconds, f"bundle (?:{begin}|refused)".encode())
        except UnknownCommandError as error:  # or the command was damaged on its way
            self._unknown = error
            time.sleep(max(0.0, min(seconds, 0.05) - (time.monotonic() - start)))
            return None
        fields = next(filter(None, map(_checked, filter(expected.fullmatch, reversed(lines or ())))), None)
        if fields is None:
            return None
        self._unknown = None
        self._is_refused = fields.get("error") == "EACCES" and "refused" in fields
        if "refused" in fields:
            if self._is_refused:
                time.sleep(min(seconds, 0.1))  # the application may serve bundles later
            return None
        return Fields(fields, self.device)


def _checked(line: str) -> dict[str, str] | None:
    """Return the fields of a line with a correct checksum."""
    match = _LINE.fullmatch(line)
    if match is None or zlib.crc32(f"@opwest {match[1]}".encode()) != int(match[2], 16):
        return None
    return {key: unquote(value) for key, _, value in (word.partition("=") for word in match[1].split()[1:])}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode() if data else "-"


DEFAULT_GROUP = 28536
"""CONFIG_OPWEST_BUNDLE_SMP_GROUP of the runtime."""

_INFO, _JOB, _PART = range(3)
_MAX_VALUES = {"off": 0xFFFFFFFF, "check": 0xFFFFFFFF, "data": b""}


class SmpBundleLink(SmpConnection):
    """An SMP server with the service of bundles. Implements BundleLink."""

    def __init__(self, place: Place, timeout: float, group: int = DEFAULT_GROUP) -> None:
        super().__init__(place, timeout)
        self._group = group
        self._has_size = False
        self._is_refused = False

    @property
    def space(self) -> int:
        """The largest part of a file in a request, bytes."""
        return self.free_space(_MAX_VALUES)

    def info(self, seconds: float) -> Info | None:
        """Return what the firmware supports; None also before the application serves bundles."""
        if not self._has_size:
            try:
                code = self.learn_size()
            except LostError:
                raise
            except LinkError as error:
                raise LinkError(error.message, SILENT_HINT) from error
            if code != 0:
                raise self._response_error(code, PARAMETERS)
            self._has_size = True
        fields = self._ask(OP.READ, _INFO, {}, "the description of the slots", seconds)
        return None if fields is None else read_info(fields, self.device)

    def job(self, request: Request, seconds: float) -> Fields | None:
        """Request a job."""
        content: dict[str, Any] = {"do": int(request.job), "session": request.session, "number": request.number}
        optional = {
            "poll": int(request.polls),
            "size": request.size,
            "sha": request.digest,
            "point": request.point,
            "buffer": request.buffer,
            "off": request.offset,
            "data": request.data,
        }
        content |= {key: value for key, value in optional.items() if value}
        if request.slot is not None:
            content["slot"] = request.slot
        return self._ask(OP.WRITE, _JOB, content, f"the end of {request.job.title}", seconds)

    def part(self, offset: int, data: bytes, check: int, seconds: float) -> Fields | None:
        """Send a part of a file."""
        request = {"off": offset, "check": check, "data": data}
        return self._ask(OP.WRITE, _PART, request, f"the receipt of the part at {offset}", seconds)

    def failure(self, awaited: str, seconds: float) -> LinkError:
        """Return the error for a missing response: what was received instead."""
        if self._is_refused:
            return not_served(self.device)
        return LinkError(self.timeout_error(awaited, seconds).message, SILENT_HINT)

    def _ask(
        self, operation: OP, command: int, request: Mapping[str, Any], awaited: str, seconds: float
    ) -> Fields | None:
        answer = self.once(operation, self._group, command, request, awaited, seconds)
        if answer is None:
            return None
        self._is_refused = answer.code == MGMT_ERR.EACCESSDENIED
        if self._is_refused:
            time.sleep(min(seconds, 0.1))  # the application may serve bundles later
            return None
        if answer.code != 0:
            raise self._response_error(answer.code, awaited)
        return Fields(answer.content, self.device)

    def _response_error(self, code: int, awaited: str) -> LinkError:
        if code == MGMT_ERR.ENOTSUP and awaited != PARAMETERS:
            return LinkError(
                f"the image on '{self.device}' does not accept bundles: its SMP server has no command group "
                f"{self._group}",
                f"{NO_SERVICE_HINT}, or give its number with --group",
            )
        return LinkError(f"{self.device}: received SMP error {error_name(code)}, expected {awaited}")
