# SPDX-License-Identifier: Apache-2.0
"""Operations on files that another program may have open."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_CAN_BE_IN_USE = os.name == "nt"
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between the attempts."""


def retried(operation: Callable[[], object]) -> None:
    """Replace, rename or delete a file.

    Windows refuses this while a virus scanner, an indexer or an editor has the file open, mostly for an instant;
    other systems do not. Raises the last PermissionError.
    """
    for pause in _PAUSES if _CAN_BE_IN_USE else ():
        try:
            operation()
        except PermissionError:
            time.sleep(pause)
        else:
            return
    operation()
