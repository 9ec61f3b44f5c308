# SPDX-License-Identifier: Apache-2.0
"""The archive of an exported program as hostile input: members by name, with limits.

Source: torch/export/pt2_archive (constants.py, _package.py) of PyTorch 2.9 to 2.13, "PT2 Archive Spec".
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from opwest.base.result import counted
from opwest.compiler.graph.types import Damaged, Unsupported

_MAX_MEMBERS = 100_000
_MAX_BYTES = 1 << 31
"""The most bytes of all members that are read."""
_MAX_JSON = 1 << 28
_LOCAL_HEADER = 30
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
RESAVE = "save it again: torch.export.save(torch.export.load(path), path) with a newer PyTorch"


class Archive:
    """The members of an archive. Errors of each method: Damaged, Unsupported."""

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise Damaged(f"no archive ({error})") from None
        infos = self._zip.infolist()
        if len(infos) > _MAX_MEMBERS:
            raise Damaged(f"{counted(len(infos), 'member')}, at most {_MAX_MEMBERS} are possible")
        self._left = _MAX_BYTES
        self.members: dict[str, zipfile.ZipInfo] = {}
        """By the name below the top folder."""
        self.top = _top_of(infos)
        for info in infos:
            _check(info)
            name = info.filename.removeprefix(self.top)
            if name in self.members:
                raise Damaged(f"two members '{info.filename}'")
            self.members[name] = info
        _check_places(infos, len(content))

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def names(self, start: str, end: str = "") -> list[str]:
        """Return the members whose names have a start and an end."""
        return sorted(name for name in self.members if name.startswith(start) and name.endswith(end) and name != start)

    def read(self, name: str, most: int = _MAX_BYTES) -> bytes:
        """Return the content of a member of at most `most` bytes."""
        info = self.members.get(name)
        if info is None:
            raise Damaged(f"no member '{self.top}{name}'")
        size = info.file_size
        if size > min(most, self._left):
            raise Damaged(f"the member '{info.filename}' has {counted(size, 'byte')}, at most {most} are possible")
        self._left -= size
        try:
            with self._zip.open(info) as stream:
                data = stream.read(size)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
            raise Damaged(f"cannot read the member '{info.filename}' ({error})") from None
        except Exception as error:  # zlib.error
            raise Damaged(f"cannot unpack the member '{info.filename}' ({error})") from None
        if len(data) != size:
            raise Damaged(f"the member '{info.filename}' ends after {counted(len(data), 'byte')} of {size}")
        return data

    def json(self, name: str) -> dict[str, Any]:
        """Return the object in a member."""
        text = self.read(name, _MAX_JSON)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Damaged(f"the member '{self.top}{name}' is no JSON text ({error})") from None
        if not isinstance(value, dict):
            raise Damaged(f"the member '{self.top}{name}' is no JSON object")
        return value


def _top_of(infos: list[zipfile.ZipInfo]) -> str:
    """Return the folder of all members with a slash; empty for archives without one."""
    tops = {info.filename.partition("/")[0] for info in infos if "/" in info.filename}
    if len(tops) == 1 and all("/" in info.filename for info in infos):
        return f"{tops.pop()}/"
    return ""


def _check(info: zipfile.ZipInfo) -> None:
    """Refuse names outside of the archive, and what zipfile cannot unpack."""
    name = info.filename
    if name.startswith("/") or "\\" in name or ".." in name.split("/") or "\0" in name:
        raise Damaged(f"a member with the path {name!r}")
    if info.flag_bits & _ENCRYPTED:
        raise Unsupported(f"the member '{name}' is encrypted", "an archive of torch.export.save", RESAVE)
    if info.compress_type not in _METHODS:
        raise Unsupported(f"the member '{name}' has the compression method {info.compress_type}", "stored or deflated")
    if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
        raise Damaged(f"the stored member '{name}' has two sizes")


def _check_places(infos: list[zipfile.ZipInfo], length: int) -> None:
    """Refuse members that overlap: a small file could contain many large ones."""
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise Damaged(f"the member '{info.filename}' overlaps another one")
        end = info.header_offset + _LOCAL_HEADER + info.compress_size
        if end > length:
            raise Damaged(f"the member '{info.filename}' ends after the end of the file")
