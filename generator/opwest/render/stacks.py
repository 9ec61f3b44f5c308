# SPDX-License-Identifier: Apache-2.0
"""Stack sizes for threads that run models."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.model.model import Model

DEFAULT = 4096
"""Bytes if the need of a model is unknown, unless the known part exceeds it."""
MARGIN = 2048
"""Bytes in addition to run: the thread's own functions, printing, logging, and the frame of an exception."""
_STEP = 256


def stack_size(models: Sequence[Model]) -> int:
    """Return the stack in bytes of a thread that runs any of the models on any target."""
    needs = [need for model in models for need in model.stack]
    most = max((need.bytes for need in needs), default=0)
    size = -(-(most + MARGIN) // _STEP) * _STEP
    return size if stack_is_known(models) else max(size, DEFAULT)


def stack_is_known(models: Sequence[Model]) -> bool:
    """Whether the stack use of every model's run is known on every target."""
    return all(model.stack and all(need.known for need in model.stack) for model in models)


def stack_reason(models: Sequence[Model]) -> str:
    """Return the reason for a stack size, as a comment in a configuration."""
    if not stack_is_known(models):
        return "Their stack use is not known for all targets: this size is an estimate; the tests print the actual use"
    most = max((need for model in models for need in model.stack), key=lambda need: need.bytes)
    return f"They use at most {most.bytes} bytes ({most.target}); the rest, {MARGIN} or more, is a margin"
