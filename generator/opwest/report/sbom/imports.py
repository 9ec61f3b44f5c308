# SPDX-License-Identifier: Apache-2.0
"""The model file that a manifest was imported from: the record `import.json` beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath

RECORD = "import.json"


def imported_model(folder: Path) -> tuple[str, str] | None:
    """Return the file name and the SHA-256 of the model file; None without a valid record."""
    try:
        data = json.loads((folder / RECORD).read_bytes())
        name, digest = PurePosixPath(data["model"]).name, data["sha256"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return (name, digest) if isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) else None
