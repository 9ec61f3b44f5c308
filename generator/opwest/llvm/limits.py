# SPDX-License-Identifier: Apache-2.0
"""What the child process may use, where the system can limit it."""

from __future__ import annotations

import math

try:
    import resource
except ImportError:  # Windows: only the parent's clock limits the child
    resource = None  # type: ignore[assignment]


def limit_process(memory: int) -> None:
    """Limit the address space of this process, and let it leave no core dump."""
    if resource is not None:
        _lower(resource.RLIMIT_AS, memory)
        _lower(resource.RLIMIT_CORE, 0)


def limit_next_request(seconds: float) -> None:
    """Give this process `seconds` more of the processor."""
    if resource is not None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        _lower(resource.RLIMIT_CPU, math.ceil(usage.ru_utime + usage.ru_stime + seconds))


def _lower(kind: int, soft: int) -> None:
    """Set the soft limit, below the hard one; systems that do not know a limit go without."""
    try:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
    except (OSError, ValueError):
        pass
