# SPDX-License-Identifier: Apache-2.0
"""Versions of programs and packages as numbers."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d+")


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: 4.2.0-rc1 gives (4, 2, 0); trailing zeros are removed."""
    match = re.match(r"v?\d+(?:\.\d+)*", version.strip())
    parts = [int(part) for part in _NUMBER.findall(match[0])] if match else []
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def at_least(version: str, least: str) -> bool:
    """Whether a version is `least` or newer."""
    return numbers(version) >= numbers(least)
