# SPDX-License-Identifier: Apache-2.0
"""DIR/build, the directory of the builds that opwest starts and of their logs: version control ignores it."""

from __future__ import annotations

import contextlib
from pathlib import Path

_IGNORED = "# Written by opwest: this directory contains builds.\n*\n"
"""The same as opwest_ignore_build() of the runtime writes in builds with west."""


def ignore_builds(folder: Path) -> None:
    """Create a directory for builds with a .gitignore for all that is in it."""
    ignore = folder / ".gitignore"
    with contextlib.suppress(OSError):  # the build reports a directory that is not writable
        folder.mkdir(parents=True, exist_ok=True)
        if not ignore.exists():
            ignore.write_text(_IGNORED, encoding="utf-8")
