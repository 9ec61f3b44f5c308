# SPDX-License-Identifier: Apache-2.0
"""The service as an MCUmgr command group: SMP over a serial device, framed by smpclient.

smpclient is an optional dependency: import this module only on demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from smp.error import MGMT_ERR
from smp.header import OP

from opwest.board.link import (
    LOCKED_HINT,
    NO_SERVICE_HINT,
    Action,
    LinkError,
    Report,
    Served,
    Tensor,
    check_tensor,
    check_version,
)
from opwest.board.smp_connection import PARAMETERS, Answer, SmpConnection, error_name
from opwest.host.profile import Profile, make_measure, make_profile

DEFAULT_GROUP = 28535
"""CONFIG_OPWEST_SERVICE_SMP_GROUP of the runtime."""

_MODEL, _TENSOR, _DATA, _ACTION, _MEASURES, _POINT, _UNTIL, _CALL = range(8)
_ATTEMPTS = 3
_MOST_TENSORS = _MOST_POINTS = 1 << 16


def _report(found: Answer) -> Report:
    return Report(
        found.number("result"),
        found.text("error"),
        found.number("code"),
        found.text("hook"),
        found.text("device"),
        found.text("operator"),
        found.number("step"),
        found.number("ns"),
    )


class SmpLink:
    """An SMP server behind a serial device. Implements Link."""

    def __init__(self, device: str, baud: int, timeout: float, group: int = DEFAULT_GROUP) -> None:
        self.device = device
        self._group = group
        self._connection = SmpConnection(device, baud, timeout)

    def describe(self) -> list[Served]:
        """Wait for the image and return its models."""
        code = self._connection.learn_size()
        if code != 0:
            raise self._response_error(code, PARAMETERS)
        models: list[Served] = []
        while True:
            found = self._ask(OP.READ, _MODEL, {"model": len(models)}, f"the description of model {len(models)}")
            if not models:
                check_version(found.number("service"), self.device)
            models.append(self._model(len(models), found))
            if len(models) >= found.number("models"):
                return models

    def _model(self, index: int, found: Answer) -> Served:
        tensors = []
        name, inputs = found.text("name"), found.number("inputs")
        outputs = found.number("outputs")
        buffers = found.number("buffers") if "buffers" in found.content else 0  # only with CONFIG_OPWEST_CHECK_STEPS
        extra = found.number("arguments") if "arguments" in found.content else 0  # only with CONFIG_OPWEST_SERVICE_CALL
        counts = {"input": inputs, "output": outputs, "buffer": buffers, "arguments": extra}
        roles = [role for role, count in counts.items() for _ in range(min(count, _MOST_TENSORS))]
        for number, role in enumerate(roles[:_MOST_TENSORS]):
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
        found = self._ask(OP.WRITE, _UNTIL, {"model": model.index, "point": point}, awaited, attempts=1)
        return replace(_report(found), stopped=found.number("stopped") != 0)

    def call(self, model: Served, operator: int, device: int) -> Report:
        """Call an operator of an open model on the written argument memory; `device` may be NO_DEVICE."""
        request = {"model": model.index, "operator": operator, "device": device}
        return _report(self._ask(OP.WRITE, _CALL, request, f"the end of operator {operator}", attempts=1))

    def write(self, model: Served, tensor: int, offset: int, data: bytes) -> int:
        """Write the first bytes of `data` to a tensor; return the number of bytes written."""
        request: dict[str, Any] = {"model": model.index, "tensor": tensor, "off": offset, "data": b""}
        request["data"] = data[: self._connection.space(request)]
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
        for number in range(min(head.number("points"), _MOST_POINTS)):
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

    def disconnect(self) -> None:
        """Close the device."""
        self._connection.disconnect()

    def _ask(
        self, operation: OP, command: int, request: Mapping[str, Any], awaited: str, attempts: int = _ATTEMPTS
    ) -> Answer:
        """Send a request up to `attempts` times; `attempts` is 1 if it must not be repeated."""
        answer = self._connection.request(operation, self._group, command, request, awaited, attempts)
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
