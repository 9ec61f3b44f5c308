# SPDX-License-Identifier: Apache-2.0
"""Requests and responses of SMP: over a serial device, UDP or Bluetooth.

smpclient is an optional dependency: import this module only on demand.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import cbor2
from smp.error import MGMT_ERR
from smp.header import OP, CommandId, Flag, GroupId, Header, Version
from smpclient.transport import SMPTransportDisconnected

from opwest.base.frozen_dataclass import dataclass
from opwest.runs.link import (
    FOREIGN_HINT,
    LOCKED_HINT,
    NO_SERVICE_HINT,
    Action,
    LinkError,
    Report,
    Served,
    Tensor,
    check_tensor,
    check_version,
    printable,
    raise_if_stopped,
)
from opwest.runs.places import Place
from opwest.runs.profile import Profile, make_measure, make_profile
from opwest.runs.smp_carriers import carrier_of

AGAIN_SECONDS = 1.0
_CONSOLE_SECONDS = 0.2
"""The time between two looks at the output of the image."""
_KEPT = 1 << 16
MAX_NUMBER_LENGTH = 5
"""Bytes of CBOR."""
PARAMETERS = "a response to an SMP request"
"""What the first request of a connection awaits."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Answer:
    """A response whose values are checked on access."""

    content: Mapping[str, Any]
    device: str
    awaited: str

    def _get(self, key: str, kind: type[_T]) -> _T:
        value = self.content.get(key)
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
        text = f"{self.device}: missing or invalid {key!r} in the response; expected {self.awaited}"
        raise LinkError(text, FOREIGN_HINT)

    def number(self, key: str) -> int:
        """Return an integer."""
        return self._get(key, int)

    def text(self, key: str) -> str:
        """Return a text."""
        return self._get(key, str)

    def bytes(self, key: str) -> bytes:
        """Return a byte string."""
        return self._get(key, bytes)

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return a list of integers."""
        values = self._get(key, list)
        return tuple(Answer({key: value}, self.device, self.awaited).number(key) for value in values)

    @property
    def code(self) -> int:
        """The error of the SMP server, 0 without one."""
        nested = self.content.get("err")
        holder = nested if isinstance(nested, dict) and "rc" not in self.content else self.content
        return Answer(holder, self.device, self.awaited).number("rc") if "rc" in holder else 0


def error_name(code: int) -> str:
    """Return the name of an error of SMP."""
    return MGMT_ERR(code).name if code in MGMT_ERR.__members__.values() else str(code)


class SmpConnection:
    """An SMP server."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.device = str(place)
        self.timeout = timeout
        self._sequence = 0
        self._malformed: str | None = None
        self._console = b""
        logging.getLogger("smpclient").setLevel(logging.CRITICAL)  # the raised errors contain what it logs
        self._carrier = carrier_of(place, timeout)
        self._transport = self._carrier.transport
        self._runner = asyncio.Runner()
        try:
            self._runner.run(self._carrier.connect())
        except BaseException:
            self._runner.close()
            raise

    def disconnect(self) -> None:
        """Close the connection."""
        with contextlib.suppress(Exception):  # the device may be gone, and transports raise various errors
            self._runner.run(self._transport.disconnect())
        self._runner.close()

    def learn_size(self) -> int:
        """Wait for the image and ask for the size of its buffer; return the error code of the response."""
        attempts = max(1, int(self.timeout / AGAIN_SECONDS))
        command = CommandId.OSManagement.MCUMGR_PARAMETERS
        parameters = self.request(OP.READ, GroupId.OS_MANAGEMENT, command, {}, PARAMETERS, attempts)
        size = parameters.content.get("buf_size")
        if parameters.code == 0 and isinstance(size, int) and size > MAX_NUMBER_LENGTH:
            self._carrier.learn_size(size)
        return parameters.code

    def free_space(self, request: Mapping[str, Any]) -> int:
        """Return how many bytes fit into an empty byte string of a request."""
        return max(1, self._carrier.space - Header.SIZE - len(cbor2.dumps(request)) - MAX_NUMBER_LENGTH)

    def request(
        self, operation: OP, group: int, command: int, request: Mapping[str, Any], awaited: str, attempts: int
    ) -> Answer:
        """Send a request up to `attempts` times; `attempts` is 1 if it must not be repeated."""
        for _ in range(attempts):
            answer = self.once(operation, group, command, request, awaited, self.timeout / attempts)
            if answer is not None:
                return answer
        raise self.timeout_error(awaited, self.timeout)

    def once(
        self, operation: OP, group: int, command: int, request: Mapping[str, Any], awaited: str, seconds: float
    ) -> Answer | None:
        """Send a request; return its response, None on a timeout."""
        try:
            answer = self._runner.run(self._exchange(operation, group, command, request, seconds, awaited))
        except (SMPTransportDisconnected, OSError) as error:
            raise self._carrier.lost(error, awaited) from error
        return None if answer is None else Answer(answer, self.device, awaited)

    async def _exchange(
        self, operation: OP, group: int, command: int, request: Mapping[str, Any], seconds: float, awaited: str
    ) -> dict[str, Any] | None:
        self._sequence = (self._sequence + 1) % 256
        payload = cbor2.dumps(request)
        header = Header(operation, Version.V2, Flag(0), len(payload), group, self._sequence, command)
        try:
            async with asyncio.timeout(seconds):
                await self._carrier.send(bytes(header) + payload)
                while True:
                    answer = await self._watched(self._answer(operation, group, command), awaited)
                    if answer is not None:
                        return answer
        except TimeoutError:
            await self._read_console(awaited)
            return None

    async def _watched(self, answer: Coroutine[Any, Any, _T], awaited: str) -> _T:
        """Return a result. Raises StoppedError if the image reports a fatal error before."""
        task = asyncio.ensure_future(answer)
        try:
            while not (await asyncio.wait({task}, timeout=_CONSOLE_SECONDS))[0]:
                await self._read_console(awaited)
        except BaseException:
            task.cancel()
            raise
        return task.result()

    async def _read_console(self, awaited: str) -> None:
        self._console = (self._console + await self._carrier.console())[-_KEPT:]
        raise_if_stopped(self._console, awaited)

    async def _answer(self, operation: OP, group: int, command: int) -> dict[str, Any] | None:
        """Return the next frame if it is the response to the request, None for a damaged or late frame."""
        try:
            frame = await self._transport.receive()
            header = Header.loads(frame[: Header.SIZE])
            answer = cbor2.loads(frame[Header.SIZE :])
        except (SMPTransportDisconnected, OSError):
            raise
        except Exception as error:  # decoders raise various exceptions for noise on the line
            self._malformed = f"{type(error).__name__}: {error}"
            return None
        expected = (OP(operation + 1), group, self._sequence, command)
        if (header.op, header.group_id, header.sequence, header.command_id) != expected:
            return None
        return answer if isinstance(answer, dict) else None

    def timeout_error(self, awaited: str, seconds: float) -> LinkError:
        """Return the error for a missing response."""
        message = f"{self.device}: timeout after {seconds:.0f} s waiting for {awaited}; "
        text = printable(self._console)
        if self._malformed is not None:
            return LinkError(message + f"received an invalid SMP frame ({self._malformed})", self._carrier.damaged_hint)
        if text:
            return LinkError(message + f"received only console output, last: {text!r}", NO_SERVICE_HINT)
        return LinkError(message + "received nothing", self._carrier.silent_hint)


DEFAULT_GROUP = 28535
"""CONFIG_OPWEST_SERVICE_SMP_GROUP of the runtime."""

_MODEL, _TENSOR, _DATA, _ACTION, _MEASURES, _POINT, _UNTIL, _CALL = range(8)
_ATTEMPTS = 3
_MAX_TENSORS = _MAX_POINTS = 1 << 16


def _report(answer: Answer) -> Report:
    number, text = answer.number, answer.text
    fault = (number("result"), text("error"), number("code"), text("hook"), text("device"))
    return Report(*fault, text("operator"), number("step"), number("ns"))


class SmpLink(SmpConnection):
    """An SMP server with the service of models. Implements Link."""

    def __init__(self, place: Place, timeout: float, group: int = DEFAULT_GROUP) -> None:
        super().__init__(place, timeout)
        self._group = group

    def describe(self) -> list[Served]:
        """Wait for the image and return its models."""
        code = self.learn_size()
        if code != 0:
            raise self._response_error(code, PARAMETERS)
        models: list[Served] = []
        while True:
            answer = self._ask(OP.READ, _MODEL, {"model": len(models)}, f"the description of model {len(models)}")
            if not models:
                check_version(answer.number("service"), self.device)
            models.append(self._model(len(models), answer))
            if len(models) >= answer.number("models"):
                return models

    def _model(self, index: int, head: Answer) -> Served:
        tensors = []
        name, inputs = head.text("name"), head.number("inputs")
        outputs = head.number("outputs")
        # Buffers exist only with CONFIG_OPWEST_CHECK_STEPS, arguments only with CONFIG_OPWEST_SERVICE_CALL.
        buffers, extra = (head.number(key) if key in head.content else 0 for key in ("buffers", "arguments"))
        counts = {"input": inputs, "output": outputs, "buffer": buffers, "arguments": extra}
        roles = [role for role, count in counts.items() for _ in range(min(count, _MAX_TENSORS))]
        for number, role in enumerate(roles[:_MAX_TENSORS]):
            request = {"model": index, "tensor": number}
            answer = self._ask(OP.READ, _TENSOR, request, f"the description of tensor {number} of {name}")
            shape = answer.numbers("shape")
            tensors.append(Tensor(answer.text("name"), role, answer.text("dtype"), answer.number("size"), shape))
            check_tensor(tensors[-1], self.device)
        return Served(index, name, tuple(tensors))

    def act(self, model: Served, action: Action) -> Report:
        """Open, run or close a model."""
        awaited = f"the end of {model.name}_{action.name.lower()}"
        return _report(self._ask(OP.WRITE, _ACTION, {"model": model.index, "do": int(action)}, awaited, attempts=1))

    def run_until(self, model: Served, point: int) -> Report:
        """Run a model until a point ends, or continue a stopped run; point 0 is the end of the run."""
        awaited = f"the end of point {point} of {model.name}_run"
        answer = self._ask(OP.WRITE, _UNTIL, {"model": model.index, "point": point}, awaited, attempts=1)
        return replace(_report(answer), stopped=answer.number("stopped") != 0)

    def call(self, model: Served, operator: int, device: int) -> Report:
        """Call an operator of an open model on the written argument memory; `device` may be NO_DEVICE."""
        request = {"model": model.index, "operator": operator, "device": device}
        return _report(self._ask(OP.WRITE, _CALL, request, f"the end of operator {operator}", attempts=1))

    def write(self, model: Served, tensor: int, offset: int, data: bytes) -> int:
        """Write the first bytes of `data` to a tensor; return the number of bytes written."""
        request: dict[str, Any] = {"model": model.index, "tensor": tensor, "off": offset, "data": b""}
        request["data"] = data[: self.free_space(request)]
        awaited = f"the receipt of input {model.tensors[tensor].name} at {offset}"
        return self._ask(OP.WRITE, _DATA, request, awaited).number("off") - offset

    def read(self, model: Served, tensor: int, offset: int) -> bytes:
        """Return the bytes of a tensor from `offset` on, as many as one response holds."""
        request = {"model": model.index, "tensor": tensor, "off": offset}
        awaited = f"tensor {model.tensors[tensor].name} at {offset}"
        return self._ask(OP.READ, _DATA, request, awaited).bytes("data")

    def measures(self, model: Served) -> Profile:
        """Return the measurements of a model's run since the model was opened."""
        head = self._ask(OP.READ, _MEASURES, {"model": model.index}, f"the measurements of model '{model.name}'")
        measures = []
        for number in range(min(head.number("points"), _MAX_POINTS)):
            request = {"model": model.index, "point": number}
            point = self._ask(OP.READ, _POINT, request, f"point {number} of model '{model.name}'")
            numbers = [point.number(key) for key in ("step", "device", "runs", "last", "min", "max", "total")]
            try:
                measures.append(make_measure(point.text("kind"), point.text("name"), *numbers))
            except ValueError as error:
                raise LinkError(f"{self.device}: invalid point {number} of model '{model.name}': {error}") from error
        try:
            return make_profile(head.number("hz"), head.number("used"), head.number("stack"), measures)
        except ValueError as error:
            raise LinkError(f"{self.device}: invalid measurements of model '{model.name}': {error}") from error

    def _ask(
        self, operation: OP, command: int, request: Mapping[str, Any], awaited: str, attempts: int = _ATTEMPTS
    ) -> Answer:
        """Send a request up to `attempts` times; `attempts` is 1 if it must not be repeated."""
        answer = self.request(operation, self._group, command, request, awaited, attempts)
        if answer.code != 0:
            raise self._response_error(answer.code, awaited)
        return answer

    def _response_error(self, code: int, awaited: str) -> LinkError:
        own = awaited != PARAMETERS
        if code == MGMT_ERR.ENOTSUP:
            missing = f"no command group {self._group}" if own else "no MCUmgr command for SMP parameters"
            return LinkError(
                f"the image on '{self.device}' has no opwest service: its SMP server has {missing}", NO_SERVICE_HINT
            )
        if code == MGMT_ERR.EACCESSDENIED and own:
            return LinkError(f"the opwest service of the image on '{self.device}' is locked", LOCKED_HINT)
        if code == MGMT_ERR.ENOENT and awaited == "the description of model 0":
            return LinkError(f"the image on '{self.device}' has an opwest service, but no models")
        return LinkError(f"{self.device}: received SMP error {error_name(code)}, expected {awaited}")
