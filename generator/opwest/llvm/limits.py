# SPDX-License-Identifier: Apache-2.0
"""Resource limits of the child process, as far as the system supports them."""

from __future__ import annotations

import math

try:
    import resource
except ImportError:  # Windows: only the parent's clock limits the child
    resource = None  # type: ignore[assignment]


def limit_process(memory: int) -> None:
    """Limit the address space of this process and disable core dumps."""
    if resource is not None:
        _lower(resource.RLIMIT_AS, memory)
        _lower(resource.RLIMIT_CORE, 0)


def limit_next_request(seconds: float) -> None:
    """Extend the processor time limit of this process by `seconds`."""
    if resource is not None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        _lower(resource.RLIMIT_CPU, math.ceil(usage.ru_utime + usage.ru_stime + seconds))


def _lower(kind: int, soft: int) -> None:
    """Set the soft limit, at most the hard one; ignore limits that the system does not support."""
    try:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
    except (OSError, ValueError):
        pass
