# SPDX-License-Identifier: Apache-2.0
"""The differences of operating systems: locks of files, groups of processes, limits of resources."""

from __future__ import annotations

import importlib
from typing import Any


def module(name: str) -> Any:
    """Return a standard module that some systems lack; None on these."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
