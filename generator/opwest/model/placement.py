# SPDX-License-Identifier: Apache-2.0
"""Which pools a tensor can go to: those that everyone who touches it can reach."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics, Location, nearest
from opwest.model.model import Pool


def candidate_pools(
    faults: Diagnostics,
    pools: dict[str, Pool],
    agents: set[str],
    wanted: str | None,
    tensor: str,
    at: Location,
    hint: str | None = None,
) -> tuple[str, ...]:
    """Return the pool asked for, else all that `agents` (devices and "cpu") can reach, in order of preference.

    `hint` says what else can be done where there is none.
    """
    if wanted is None:
        found = tuple(pool.name for pool in pools.values() if agents <= (pool.reachable_by or agents))
        if not found:
            faults.error(
                f"no pool can be reached by all that use tensor {tensor!r}: {', '.join(sorted(agents))}",
                at,
                expected="one pool that lists them all in reachable_by",
                hint=hint,
            )
        return found
    if wanted not in pools:
        faults.error(f"there is no pool {wanted!r}", at, hint=nearest(wanted, pools))
        return ()
    missing = agents - (pools[wanted].reachable_by or agents)
    if missing:
        faults.error(
            f"tensor {tensor!r} is used by {', '.join(sorted(missing))}, which can't reach pool {wanted!r}",
            at,
            expected=f"a pool reachable by {', '.join(sorted(agents))}",
        )
        return ()
    return (wanted,)
