# SPDX-License-Identifier: Apache-2.0
"""Limits of memory and processor time for a process, as far as the system supports them."""

from __future__ import annotations

import math

from opwest.system import module

_resource = module("resource")


def limits_time() -> bool:
    """Whether the system can limit the processor time of a process; otherwise its parent limits the elapsed time."""
    return _resource is not None


def limit_process(memory: int) -> None:
    """Limit the address space of this process and disable core dumps."""
    if _resource is not None:
        _lower(_resource.RLIMIT_AS, memory)
        _lower(_resource.RLIMIT_CORE, 0)


def limit_next_request(seconds: float) -> None:
    """Extend the processor time limit of this process by `seconds`."""
    if _resource is not None:
        usage = _resource.getrusage(_resource.RUSAGE_SELF)
        _lower(_resource.RLIMIT_CPU, math.ceil(usage.ru_utime + usage.ru_stime + seconds))


def _lower(kind: int, soft: int) -> None:
    """Set the soft limit, at most the hard one; ignore limits that the system does not support."""
    try:
        _, hard = _resource.getrlimit(kind)
        _resource.setrlimit(kind, (soft if hard == _resource.RLIM_INFINITY else min(soft, hard), hard))
    except (OSError, ValueError):
        pass
