# SPDX-License-Identifier: Apache-2.0
"""Compiled templates, stored like Python's compiled modules: in `__pycache__`, or below PYTHONPYCACHEPREFIX.

Compiling the templates takes longer than the rest of the generation of a small model. Jinja compares the hash of a
template's text, its own version and Python's before it uses a file. PYTHONDONTWRITEBYTECODE disables writing.
A process compiles or reads each template once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Final

from jinja2.bccache import Bucket, BytecodeCache

_COMPILED: Final[dict[tuple[str, str], CodeType]] = {}
"""The code of templates in this process, by Jinja's key and the hash of the text."""


class CompiledTemplates(BytecodeCache):
    """The compiled templates of one directory. A file that cannot be read or written is treated as absent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read the code of a template, if there is any."""
        bucket.code = _COMPILED.get((bucket.key, bucket.checksum))
        if bucket.code is not None:
            return
        with contextlib.suppress(OSError, EOFError, ValueError, TypeError), self._place(bucket).open("rb") as file:
            bucket.load_bytecode(file)
            self._keep(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the code of a template, atomically: other processes may read it at the same time."""
        self._keep(bucket)
        if sys.dont_write_bytecode:
            return
        import tempfile

        place = self._place(bucket)
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=place.parent, prefix=place.name)
            try:
                with os.fdopen(handle, "wb") as file:
                    bucket.write_bytecode(file)
                os.replace(draft, place)  # noqa: PTH105
            except OSError:
                os.unlink(draft)  # noqa: PTH108

    @staticmethod
    def _keep(bucket: Bucket) -> None:
        if bucket.code is not None:
            _COMPILED[bucket.key, bucket.checksum] = bucket.code

    def _place(self, bucket: Bucket) -> Path:
        return Path(cache_from_source(str(self._folder / f"{bucket.key}.jinja")))
