# SPDX-License-Identifier: Apache-2.0
"""A minimal perfect hash over operator names, for lookups whose cost does not grow with their number.

Hash and displace (Belazzougui, Botelho, Dietzfelbinger: "Hash, displace, and compress", ESA 2009): names fall
into small buckets, and every bucket gets the displacement that maps its names to places that are still
free. The functions must equal those of zephyr_module/src/registry.c.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.frozen_dataclass import dataclass

_MASK = 0xFFFFFFFF
_NAMES_PER_BUCKET = 4
_MAX_DISPLACEMENT = 0xFFFF


@dataclass(frozen=True, slots=True)
class PerfectHash:
    """`order[i]` is the index of the name in place i."""

    seed: int
    displacements: tuple[int, ...]
    order: tuple[int, ...]


def perfect_hash(names: Sequence[str]) -> PerfectHash:
    """Return a minimal perfect hash of distinct names."""
    for seed in range(1000):
        table = _try(names, seed)
        if table is not None:
            return table
    raise AssertionError("no perfect hash was found")  # the names are not distinct


def _try(names: Sequence[str], seed: int) -> PerfectHash | None:
    count = len(names)
    bucket_count = -(-count // _NAMES_PER_BUCKET)
    hashes = [_hash(name.encode(), seed) for name in names]
    if len(set(hashes)) != count:
        return None
    buckets: list[list[int]] = [[] for _ in range(bucket_count)]
    for index, hashed in enumerate(hashes):
        buckets[_scale(_spread(hashed), bucket_count)].append(index)
    order = [-1] * count
    displacements = [0] * bucket_count
    # Full buckets first: they need the most free places.
    for bucket in sorted(range(bucket_count), key=lambda b: (-len(buckets[b]), b)):
        members = buckets[bucket]
        displacement = _displacement([hashes[index] for index in members], order)
        if displacement is None:
            return None
        displacements[bucket] = displacement
        for index in members:
            order[_place(hashes[index], displacement, count)] = index
    return PerfectHash(seed, tuple(displacements), tuple(order))


def _displacement(hashes: Sequence[int], order: Sequence[int]) -> int | None:
    """Return the first displacement that maps hashes to distinct free places.

    `_place` is inlined here: this loop is most of the work of a large registry.
    """
    count = len(order)
    if not hashes:
        return 0
    first, others, mask = hashes[0], hashes[1:], _MASK
    end = first + (_MAX_DISPLACEMENT + 1) * 0x9E3779B9
    for displacement, shifted in enumerate(range(first, end, 0x9E3779B9)):
        moved = shifted & mask
        moved = (moved ^ moved >> 16) * 0x85EBCA6B & mask
        moved = (moved ^ moved >> 13) * 0xC2B2AE35 & mask
        place = (moved ^ moved >> 16) * count >> 32
        if order[place] >= 0:
            continue
        if not others:
            return displacement
        places = {place}
        for other in others:
            place = _place(other, displacement, count)
            if order[place] >= 0 or place in places:
                break
            places.add(place)
        else:
            return displacement
    return None


def _hash(name: bytes, seed: int) -> int:
    hashed = 2166136261 ^ seed
    for byte in name:
        hashed = (hashed ^ byte) * 16777619 & _MASK
    return hashed


def _spread(hashed: int) -> int:
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _MASK
    return hashed ^ hashed >> 16


def _scale(hashed: int, count: int) -> int:
    return hashed * count >> 32


def _place(hashed: int, displacement: int, count: int) -> int:
    return _scale(_spread(hashed + displacement * 0x9E3779B9 & _MASK), count)
