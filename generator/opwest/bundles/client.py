# SPDX-License-Identifier: Apache-2.0
"""Jobs and uploads over a connection that loses, repeats, reorders and damages messages, and the slots of a board."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.bundles.faults import GOOD, NO_BUNDLE, Verdict, read_verdict, version_text
from opwest.bundles.format import LINKED
from opwest.bundles.link import DONE, NO_SLOT, REFUSED, RUNNING, BundleLink, Fields, Info, Job, Request, checksum
from opwest.runs.link import LinkError, LostError
from opwest.runs.progress import StageProgress

_SHORTEST, _MAX_LENGTH = 0.1, 2.0
"""Seconds to wait for one response before the request is sent again."""
_MAX_JOB_LENGTH = 20
"""The longest job, in multiples of the timeout."""
_RESTARTS = 8
"""Maximum retries after a restart of the board or a conflict with another host."""
_LOSSES = 8
"""Maximum losses of the connection without a valid response in between."""
_AROUND_PART = 80
"""What a job has besides a part of a tensor, more than a part of a file, bytes."""
LARGER_HINT = "use a larger partition, or fewer golden vectors: --vectors N"
"""For a file that is larger than its slot."""
CONFIRM_HINT = "confirm it (opwest bundle confirm) or go back (opwest bundle roll-back)"
"""For a model that is being tried."""
_ROLES = {1: "active", 2: "trying", 4: "previous", 8: "next"}
_T = TypeVar("_T")


class ForgottenError(LinkError):
    """The board does not have the job any more: it restarted, or another host requested a job."""


@dataclass(frozen=True)
class Outcome:
    """The end of a job: 0 or a negative errno with its name, and the fields of its kind."""

    result: int
    error: str
    fields: Fields


class BundleClient:
    """A board with slots for bundles."""

    def __init__(
        self,
        connect: Callable[[], BundleLink],
        *,
        session: int,
        timeout: float,
        progress: StageProgress,
        reconnects: bool = True,
    ) -> None:
        self._connect = connect
        self._session = session
        self._timeout = timeout
        self._progress = progress
        self._reconnects = reconnects
        self._number = 0
        self._wait = _MAX_LENGTH
        self._heard = time.monotonic()  # the latest usable response, or the begin of waiting for one
        self._losses = 0  # since the latest usable response
        self._link = connect()
        self._is_open = True
        try:
            self.info = self._ready()
        except BaseException:
            self.disconnect()
            raise

    @property
    def device(self) -> str:
        """The serial device, as shown to the user."""
        return self._link.device

    def disconnect(self) -> None:
        """Close the device."""
        if self._is_open:
            self._is_open = False
            self._link.disconnect()

    @property
    def part_size(self) -> int:
        """The largest part of a tensor in a job, bytes."""
        return max(1, min(self.info.part, self._link.space - _AROUND_PART))

    def do(self, job: Job, awaited: str, **arguments: Any) -> Outcome:
        """Do a job, with fields of a Request, and wait for its end. Raises ForgottenError if its result is unknown."""
        self._number += 1
        self._usable()
        begin = time.monotonic()
        polls = False
        while True:
            request = Request(job, self._session, self._number, polls, **arguments)
            fields = self._once(partial(self._send_job, request), awaited)
            if fields is None or (fields.number("session"), fields.number("number")) != (self._session, self._number):
                self._late(awaited)
                continue
            state, result, error = fields.number("state"), fields.number("result"), fields.text("error")
            if state == DONE:
                self._usable()
                return Outcome(result, error, fields)
            if state == RUNNING:
                self._usable()
                polls = True
            elif state == REFUSED and error == "ENOENT":
                raise self.forgotten(job)
            elif state != REFUSED or error != "EBUSY":
                raise LinkError(f"{self.device}: the board refuses '{job.title}': {error or result}")
            else:
                self._late(f"the end of another host's command, before '{job.title}'")
                time.sleep(_SHORTEST)
            lasted = time.monotonic() - begin
            if lasted > _MAX_JOB_LENGTH * self._timeout:
                raise LinkError(
                    f"{self.device}: '{job.title}' has not ended after {lasted:.0f} s",
                    "a thread of the application may hold the model (opwest_session_hold), or never sleep; "
                    "'opwest bundle list' shows the result",
                )

    def forgotten(self, job: Job) -> ForgottenError:
        """Return the error for a job whose result is unknown."""
        return ForgottenError(
            f"{self.device}: the board does not have the result of '{job.title}'",
            "it restarted, or another host sent a command; 'opwest bundle list' prints the current model",
        )

    def ask(self, job: Job, awaited: str, *, slot: int | None = None) -> Outcome:
        """Do a job that changes nothing: it is repeated if its result is unknown."""
        for _ in range(_RESTARTS):
            with contextlib.suppress(ForgottenError):
                return self.do(job, awaited, slot=slot)
        return self.do(job, awaited, slot=slot)

    def check(self, done: Outcome, failure: str) -> Fields:
        """Return the fields of a job that succeeded. Raises LinkError."""
        if done.result == 0:
            return done.fields
        raise LinkError(f"{self.device}: {failure}: {done.error or f'error {done.result}'}")

    def state(self) -> State:
        """Return the records of the board."""
        fields = self.check(self.ask(Job.STATE, "the state of the slots"), "cannot read the state")
        numbers = {key: fields.number(key) for key in ("active", "trying", "previous", "crashes", "fault")}
        return State(**numbers, fault_name=fields.text("fault_name"))

    def slots(self) -> list[BoardSlot]:
        """Return the slots of the board."""
        slots = []
        for index in range(self.info.slots):
            done = self.ask(Job.LIST, f"the description of slot {index}", slot=index)
            fields = self.check(done, "cannot list")
            roles = fields.number("is")
            model = None
            if "name" in fields:
                version, length, kind, interface = map(fields.number, ("version", "length", "kind", "interface"))
                model = Model(fields.text("name"), version, length, kind, interface, fields.bytes("model"))
            slots.append(
                BoardSlot(
                    *(index, fields.number("address"), fields.number("size")),
                    tuple(name for bit, name in _ROLES.items() if roles & bit),
                    *(read_verdict(fields), model),
                )
            )
        return slots

    def upload(self, data: bytes, slot: int | None = None) -> int:
        """Send a file to a slot, by default the one for the next upload; return the slot."""
        digest = hashlib.sha512(data).digest()
        what, shown = "sending the bundle", -1
        offset = used = 0
        begins, restarts = True, 0
        while begins or offset < len(data):
            if restarts > _RESTARTS:
                text = f"{self.device}: the upload was interrupted {restarts} times"
                raise LinkError(text, "the board restarts, or another host sends a bundle, too")
            if begins:
                try:
                    offset, used = self._begin(data, digest, slot)
                    begins = False
                except ForgottenError:
                    restarts += 1
                continue
            if offset != shown:
                self._progress.part(what, offset, len(data))
                shown = offset
            part = data[offset : offset + self._link.space]
            check = checksum(digest, offset, part)
            fields = self._once(partial(self._send_part, offset, part, check), f"the receipt of the part at {offset}")
            error = None if fields is None else fields.text("error")
            if fields is not None and fields.number("result") == 0 and fields.number("at") == offset:
                following = fields.number("off")
                if not 0 <= following <= len(data):
                    raise LinkError(
                        f"{self.device}: the board expects the bundle at {following} of {counted(len(data), 'byte')}"
                    )
                if following > offset:
                    self._usable()
                offset = following
            elif error in ("EPERM", "EBUSY"):
                begins, restarts = True, restarts + 1
                continue
            elif fields is not None and error not in ("", "EILSEQ") and fields.number("at") == offset:
                text = f"{self.device}: cannot write the bundle at {offset}: {error or fields.number('result')}"
                raise LinkError(text, "the flash of the slot may be worn out, or its driver failed")
            self._late(f"the receipt of the part at {offset}")
        self._progress.part(what, len(data), len(data))
        return used

    def _begin(self, data: bytes, digest: bytes, slot: int | None) -> tuple[int, int]:
        done = self.do(Job.BEGIN, "the slot to be erased", slot=slot, size=len(data), digest=digest)
        if done.result != 0:
            raise _begin_error(done, len(data), slot, self.device)
        offset, used = done.fields.number("off"), done.fields.number("slot")
        if not 0 <= offset <= len(data) or used == NO_SLOT:
            raise LinkError(f"{self.device}: the board expects the bundle at {offset} of {counted(len(data), 'byte')}")
        return offset, used

    def _ready(self) -> Info:
        """Wait until the application serves bundles."""
        awaited = "a description of the slots"
        self._heard = time.monotonic()
        while True:
            info = self._once(lambda: self._link.info(self._patience()), awaited)
            if info is not None:
                return info
            self._late(awaited)

    # The connection may be another one after it was lost.
    def _send_job(self, request: Request) -> Fields | None:
        return self._link.job(request, self._patience())

    def _send_part(self, offset: int, part: bytes, check: int) -> Fields | None:
        return self._link.part(offset, part, check, self._patience())

    def _patience(self) -> float:
        return min(self._wait, self._timeout)

    def _once(self, send: Callable[[], _T | None], awaited: str) -> _T | None:
        """Send a request and follow the time of responses; connect again after the device disappeared."""
        begin = time.monotonic()
        try:
            response = send()
        except LostError as error:
            if not self._reconnects:
                raise
            self._connect_again(error, awaited)
            return None
        if response is None:
            self._wait = min(_MAX_LENGTH, 2 * self._wait)
        else:
            lasted = time.monotonic() - begin
            self._wait = min(_MAX_LENGTH, max(_SHORTEST, 0.5 * self._wait, 4 * lasted))
        return response

    def _connect_again(self, lost: LostError, awaited: str) -> None:
        self._progress.show(f"lost {self.device}; waiting for it")
        self.disconnect()
        self._losses += 1
        if self._losses > _LOSSES:
            text = f"{lost.message}; it was lost {self._losses} times while waiting for {awaited}"
            raise LinkError(text, "the board restarts repeatedly: read its console") from lost
        end = time.monotonic() + self._timeout
        while True:
            try:
                self._link = self._connect()
                self._is_open = True
                break
            except LinkError as error:
                if time.monotonic() > end:
                    raise LinkError(
                        f"{lost.message}; it has not returned within {self._timeout:g} s, while waiting for {awaited}: "
                        f"{error.message}",
                        "plug in the board and repeat the command: an upload of the same file continues",
                    ) from lost
                time.sleep(_SHORTEST)
        self._wait = _MAX_LENGTH
        self.info = self._ready()
        self._heard = time.monotonic()

    def _usable(self) -> None:
        """Note a usable response, or the begin of a command."""
        self._heard = time.monotonic()
        self._losses = 0

    def _late(self, awaited: str) -> None:
        """Raise LinkError if there was no usable response for too long."""
        silent = time.monotonic() - self._heard
        if silent > self._timeout:
            raise self._link.failure(awaited, silent)


def _begin_error(done: Outcome, size: int, slot: int | None, device: str) -> LinkError:
    if done.error == "EBUSY":
        text = f"{device}: the board accepts no upload: its slot is in use, or a model is not confirmed"
        return LinkError(text, CONFIRM_HINT)
    if done.error == "EFBIG":
        place = "the slot of the next upload" if slot is None else f"slot {slot}"
        return LinkError(f"{device}: the bundle of {counted(size, 'byte')} is larger than {place}", LARGER_HINT)
    if done.error == "ENOENT":
        what = "the board has no slot for an upload" if slot is None else f"the board has no slot {slot}"
        return LinkError(f"{device}: {what}", "'opwest bundle list' prints the slots")
    return LinkError(
        f"{device}: cannot erase the slot: {done.error or done.result}", "the flash or its driver failed; try again"
    )


@dataclass(frozen=True)
class Model:
    """The header of a bundle in a slot."""

    name: str
    version: int
    length: int
    """Bytes of the signed part."""
    kind: int
    interface_hash: int
    model_hash: bytes


@dataclass(frozen=True)
class BoardSlot:
    """A slot; `roles` are `active`, `trying`, `previous` and `next`."""

    index: int
    address: int
    size: int
    roles: tuple[str, ...]
    verdict: Verdict
    model: Model | None

    def as_text(self) -> str:
        """Return one line of text."""
        roles = f" ({', '.join(self.roles)})" if self.roles else ""
        text = f"slot {self.index} at 0x{self.address:x}, {counted(self.size, 'byte')}{roles}: "
        if self.model is None:
            return text + ("empty" if self.verdict.fault == NO_BUNDLE else self.verdict.reason)
        text += f"{self.model.name} {version_text(self.model.version)}"
        return text if self.verdict.fault == GOOD else f"{text}; refused: {self.verdict.reason}"

    def as_json(self) -> dict[str, object]:
        """Return the value for JSON output."""
        model = self.model and {
            "name": self.model.name,
            "version": version_text(self.model.version),
            "signed_bytes": self.model.length,
            "link": "slot" if self.model.kind == LINKED else "llext",
            "interface_hash": f"{self.model.interface_hash:016x}",
            "model_hash": self.model.model_hash.hex(),
        }
        return {
            "slot": self.index,
            "address": self.address,
            "bytes": self.size,
            "roles": list(self.roles),
            "verdict": self.verdict.as_json(),
            "model": model,
        }


@dataclass(frozen=True)
class State:
    """The records of the board: slots, or NO_SLOT; `fault` is the end of the latest trial."""

    active: int
    trying: int
    previous: int
    crashes: int
    fault: int
    fault_name: str
