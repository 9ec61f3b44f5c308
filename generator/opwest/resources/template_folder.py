# SPDX-License-Identifier: Apache-2.0
"""Reading a folder of templates."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from opwest.diagnostics import Diagnostics, Location
from opwest.render.templates.user import known_templates
from opwest.resources import resource
from opwest.templates import SUFFIX, UserTemplates, is_extra
from opwest.write.lock import is_inside

MAX_BYTES: Final = 64 << 20


def read_templates(folder: Path | None, faults: Diagnostics) -> UserTemplates | None:
    """Return the templates of a folder, None where there is none; report the files in it that are no templates."""
    if folder is None:
        return None
    if not folder.is_dir():
        seen = "this is no folder" if folder.exists() else "the folder does not exist"
        faults.error(seen, Location(str(folder)), expected="a folder with templates, such as src/main.c.jinja")
        return None
    known = set(known_templates(resource("project_template")))
    templates, copies, hashes = {}, {}, {}
    for name in _names(folder, faults):
        place = Location(str(folder / name))
        if not is_inside(name):
            faults.error(f"the name {name!r} can't be in a project", place)
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
    if name.lower().startswith(("readme", "license", "changelog")):  # of the folder itself
        return
    if f"{name}{SUFFIX}" in known:
        faults.error(
            f"{name} replaces nothing: a template's name ends in {SUFFIX}", place, hint=f"call it {name}{SUFFIX}"
        )
    else:
        faults.warning(
            "the file is no template, and is ignored", place, hint="put files that every project gets into extra/"
        )


def _names(folder: Path, faults: Diagnostics) -> list[str]:
    """Return the paths of all files; what is hidden is not part of a template."""
    names = []

    def report(error: OSError) -> None:
        faults.error(f"the folder can't be read: {error.strerror}", Location(str(error.filename)))

    for root, folders, files in os.walk(folder, onerror=report):
        inside_extra = root != str(folder)
        folders[:] = sorted(f for f in folders if f != "__pycache__" and (inside_extra or not f.startswith(".")))
        for file in files:
            name = (Path(root) / file).relative_to(folder).as_posix()
            if is_extra(name) or not file.startswith("."):
                names.append(name)
    return sorted(names)


def _read(path: Path, place: Location, faults: Diagnostics) -> bytes | None:
    try:
        if not path.is_file():
            faults.error("this is no regular file", place)
        elif path.stat().st_size > MAX_BYTES:
            faults.error(f"the file has {path.stat().st_size} bytes", place, expected=f"at most {MAX_BYTES}")
        else:
            return path.read_bytes()
    except OSError as error:
        faults.error(f"the file can't be read: {error.strerror}", place)
    return None


def _text(content: bytes, place: Location, faults: Diagnostics) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        faults.error(f"byte {content[error.start]:#04x} is not UTF-8", Location(place.file, line, 1))
        return None
