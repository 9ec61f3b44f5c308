# SPDX-License-Identifier: Apache-2.0
"""Read templates: those of opwest, and those of a directory of the user."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Final

from jinja2.bccache import Bucket, BytecodeCache

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.files import is_inside
from opwest.base.paths import joined, spelled
from opwest.base.resources import resource
from opwest.render.templates.files import SUFFIX, Templates, UserTemplates, is_extra, known_templates

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
        with contextlib.suppress(OSError, EOFError, ValueError, TypeError), open(self._place(bucket), "rb") as file:  # noqa: PTH123
            bucket.load_bytecode(file)
            self._keep(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the code of a template, atomically: other processes may read it at the same time."""
        self._keep(bucket)
        if sys.dont_write_bytecode:
            return
        import tempfile

        place = Path(self._place(bucket))
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

    def _place(self, bucket: Bucket) -> str:
        return cache_from_source(joined(self._folder, f"{bucket.key}.jinja"))


MAX_BYTES: Final = 64 << 20


def read_templates(folder: Path | None, faults: Diagnostics) -> Templates:
    """Return opwest's templates, and those of a directory of the user, if any; report files that are not templates."""
    own = _own_texts()
    user = None if folder is None else _read_folder(folder, set(known_templates(own)), faults)
    return Templates(own, user, CompiledTemplates(resource("project_template")))


def read_own_templates() -> Templates:
    """Return opwest's templates alone."""
    return read_templates(None, Diagnostics())


def _own_texts() -> dict[str, str]:
    """Return the text of every template of project_template, by path."""
    root = resource("project_template")
    return {spelled(path.relative_to(root)): path.read_text("utf-8") for path in sorted(root.rglob(f"*{SUFFIX}"))}


def _read_folder(folder: Path, known: set[str], faults: Diagnostics) -> UserTemplates | None:
    if not folder.is_dir():
        seen = "not a directory" if folder.exists() else "the directory does not exist"
        faults.error(seen, Location(str(folder)), expected="a directory with templates, such as src/main.c.jinja")
        return None
    templates, copies, hashes = {}, {}, {}
    for name in _names(folder, faults):
        place = Location(str(folder / name))
        if not is_inside(name):
            faults.error(f"invalid name {name!r} for a file of a project", place)
        elif not name.endswith(SUFFIX) and not is_extra(name):
            _report_no_template(name, known, place, faults)
        elif (content := _read(folder / name, place, faults)) is not None:
            hashes[name] = hashlib.sha256(content).hexdigest()
            if not name.endswith(SUFFIX):
                copies[name] = content
            elif (text := _text(content, place, faults)) is not None:
                templates[name] = text
    return UserTemplates(str(folder), templates, copies, hashes)


def _report_no_template(name: str, known: set[str], place: Location, faults: Diagnostics) -> None:
    if name.lower().startswith(("readme", "license", "changelog")):  # these describe the directory
        return
    if f"{name}{SUFFIX}" in known:
        faults.error(
            f"template {name} has no effect without the suffix {SUFFIX}", place, hint=f"rename it to {name}{SUFFIX}"
        )
    else:
        faults.warning(
            "ignored: the file is not a template", place, hint="put additional files of projects into extra/"
        )


def _names(folder: Path, faults: Diagnostics) -> list[str]:
    """Return the paths of all files that are not hidden."""
    names = []

    def report(error: OSError) -> None:
        faults.error(f"cannot read the directory: {error.strerror}", Location(str(error.filename)))

    for root, folders, files in os.walk(folder, onerror=report):
        inside_extra = root != str(folder)
        folders[:] = sorted(f for f in folders if f != "__pycache__" and (inside_extra or not f.startswith(".")))
        for file in files:
            name = spelled((Path(root) / file).relative_to(folder))
            if is_extra(name) or not file.startswith("."):
                names.append(name)
    return sorted(names)


def _read(path: Path, place: Location, faults: Diagnostics) -> bytes | None:
    try:
        if not path.is_file():
            faults.error("not a regular file", place)
        elif path.stat().st_size > MAX_BYTES:
            faults.error(f"the file has {path.stat().st_size} bytes", place, expected=f"at most {MAX_BYTES} bytes")
        else:
            return path.read_bytes()
    except OSError as error:
        faults.error(f"cannot read the file: {error.strerror}", place)
    return None


def _text(content: bytes, place: Location, faults: Diagnostics) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        faults.error(f"invalid UTF-8 byte {content[error.start]:#04x}", Location(place.file, line, 1))
        return None
