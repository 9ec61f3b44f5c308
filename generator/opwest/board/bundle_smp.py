# SPDX-License-Identifier: Apache-2.0
"""Bundles over SMP: an MCUmgr command group of its own.

smpclient is an optional dependency: import this module only on demand.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from smp.error import MGMT_ERR
from smp.header import OP

from opwest.board.bundle_link import NO_SERVICE_HINT, SILENT_HINT, Fields, Info, Request, not_served, read_info
from opwest.board.link import LinkError, LostError
from opwest.board.smp_connection import PARAMETERS, SmpConnection, error_name

DEFAULT_GROUP = 28536
"""CONFIG_OPWEST_BUNDLE_SMP_GROUP of the runtime."""

_INFO, _JOB, _PART = range(3)
_LARGEST = {"off": 0xFFFFFFFF, "check": 0xFFFFFFFF, "data": b""}


class SmpBundleLink:
    """An SMP server behind a serial device. Implements BundleLink."""

    def __init__(self, device: str, baud: int, timeout: float, group: int = DEFAULT_GROUP) -> None:
        self.device = device
        self._group = group
        self._connection = SmpConnection(device, baud, timeout)
        self._has_size = False
        self._is_refused = False

    @property
    def space(self) -> int:
        """The largest part of a file in a request, bytes."""
        return self._connection.space(_LARGEST)

    def info(self, seconds: float) -> Info | None:
        """Return what the firmware supports; None also before the application serves bundles."""
        if not self._has_size:
            try:
                code = self._connection.learn_size()
            except LostError:
                raise
            except LinkError as error:
                raise LinkError(error.message, SILENT_HINT) from error
            if code != 0:
                raise self._response_error(code, PARAMETERS)
            self._has_size = True
        found = self._ask(OP.READ, _INFO, {}, "the description of the slots", seconds)
        return None if found is None else read_info(found, self.device)

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
        return LinkError(self._connection.timeout_error(awaited, seconds).message, SILENT_HINT)

    def disconnect(self) -> None:
        """Close the device."""
        self._connection.disconnect()

    def _ask(
        self, operation: OP, command: int, request: Mapping[str, Any], awaited: str, seconds: float
    ) -> Fields | None:
        answer = self._connection.once(operation, self._group, command, request, awaited, seconds)
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
