# SPDX-License-Identifier: Apache-2.0
"""Select the pools for a tensor: those that all its agents (devices, "cpu") can reach."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics, Location, nearest
from opwest.model.model import Pool


def candidate_pools(
    faults: Diagnostics,
    pools: dict[str, Pool],
    agents: set[str],
    requested: str | None,
    tensor: str,
    at: Location,
    hint: str | None = None,
) -> tuple[str, ...]:
    """Return the pool `requested`, else all that `agents` (devices and "cpu") can reach, in order of preference.

    Report an error, with `hint`, if there is none.
    """
    if requested is None:
        found = tuple(pool.name for pool in pools.values() if agents <= (pool.reachable_by or agents))
        if not found:
            faults.error(
                f"no pool is reachable by all users of tensor {tensor!r}: {', '.join(sorted(agents))}",
                at,
                expected="a pool with all of them in reachable_by",
                hint=hint,
            )
        return found
    if requested not in pools:
        faults.error(f"undefined pool {requested!r}", at, hint=nearest(requested, pools))
        return ()
    missing = agents - (pools[requested].reachable_by or agents)
    if missing:
        faults.error(
            f"pool {requested!r} of tensor {tensor!r} is not reachable by {', '.join(sorted(missing))}",
            at,
            expected=f"a pool reachable by {', '.join(sorted(agents))}",
        )
        return ()
    return (requested,)
