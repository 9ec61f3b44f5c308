# SPDX-License-Identifier: Apache-2.0
"""Read a model file of any format, and report damaged files."""

from __future__ import annotations

import importlib
import io
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

from opwest.base import commands
from opwest.base.frozen_dataclass import dataclass
from opwest.base.path_suggestions import hint_for
from opwest.compiler.faults import fault, internal, require_packages
from opwest.compiler.graph.types import Damaged, Graph, Rules, Unsupported
from opwest.compiler.graph.user import UserOperator
from opwest.frontends.formats import FORMATS, Format, format_of_start, named
from opwest.objects.model_files import identify, identify_content

_INSTALL = commands.pip_install("opwest[models]")
_MAX_BYTES = 1 << 31
_PART_BYTES = 1 << 20


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises OpwestError."""
    content = bytearray()
    try:
        with path.open("rb") as stream:
            # In parts: a read of the greatest size allocates that size for every file.
            while len(content) <= _MAX_BYTES and (part := stream.read(_PART_BYTES)):
                content += part
    except OSError as error:
        raise fault(f"cannot read the model: {error.strerror}", str(path), hint=hint_for(path)) from None
    if len(content) > _MAX_BYTES:
        raise fault("the file has more than 2 GiB", str(path), "a model of at most 2 GiB")
    return bytes(content)


@dataclass(frozen=True)
class ModelFile:
    """A model, and where it comes from."""

    content: bytes
    """The bytes of a model file: of the file itself, or of an array in a C source."""
    name: str
    """Similar to a name for the model."""
    origin: str
    """For comments: the name of the file, with that of the array."""
    is_array: bool = False


def read_model_file(path: Path, array: str | None = None) -> ModelFile:
    """Return the model in a file; `array`: the name of the array, of a C source with several. Raises OpwestError."""
    content = read_file(path)
    row = format_of_start(content[:8])
    found = None
    if array is not None or row is None or not row.is_certain:
        from opwest.frontends.arrays import model_array  # other files need no reader of C

        found = model_array(content, path, array)
    if found is None:
        return ModelFile(content, path.stem, path.name)
    return ModelFile(found.content, found.name or path.stem, found.origin, True)


def refuse(path: Path, array: str | None = None) -> None:
    """Raise OpwestError with what a file is, if no kind of import reads it."""
    if not path.is_file():
        found = identify(path)
        if found.kind is None:
            raise fault(f"the {'directory' if path.is_dir() else 'file'} is {found.what}", str(path), hint=found.hint)
        return
    format_of(read_model_file(path, array).content, str(path))


def format_of(content: bytes, place: str) -> Format:
    """Return the format of a file. Raises OpwestError for other files: with what they are."""
    row = format_of_start(content[:8])
    if row is not None and row.is_certain:
        return row
    found = identify_content(io.BytesIO(content), Path(place))
    row = named(found.kind) or (row if found.what is None else None)
    if row is None:
        *others, last = (row.title for row in FORMATS)
        titles = f"{', '.join(others)} or {last}"
        forms = ", or ".join(row.form for row in FORMATS)
        if found.what is None:
            raise fault(f"not a {titles} model", place, forms)
        raise fault(f"the file is {found.what}", place, f"a {titles} model", found.hint)
    return row


def require(row: Format) -> None:
    """Raise OpwestError if a package is missing that a format requires."""
    require_packages(row.packages, f"imports of {row.title} files", _INSTALL)


def read_model(
    content: bytes, place: str, rules: Rules | None = None, users: Mapping[str, UserOperator] | None = None
) -> tuple[Graph, ...]:
    """Return the models of a file; `users` are operators of the user by their names in it. Raises OpwestError."""
    row = format_of(content, place)
    require(row)
    module, _, function = row.reader.partition(":")
    reader = getattr(importlib.import_module(module), function)
    return _read(lambda: reader(content, rules, users), place, row.noun)


def _read(reader: Callable[[], tuple[Graph, ...]], place: str, kind: str) -> tuple[Graph, ...]:
    """Call a reader and report a damaged file. Raises OpwestError."""
    again = "fetch or convert the model again"
    try:
        return reader()
    except Damaged as reason:
        raise fault(f"the file is damaged: {reason}", place, hint=again) from None
    except Unsupported as reason:
        raise fault(reason.reason, place, reason.expected, hint=reason.hint) from None
    except struct.error:
        raise fault(
            f"the file is damaged: {kind} with an offset beyond the end of the file", place, hint=again
        ) from None
    except RecursionError:
        raise fault(f"the file is damaged: {kind} that is nested too deeply", place, hint=again) from None
    except Exception as error:  # any error of the packages that parse files
        own = internal(error, place)
        if own is not None:
            raise own from None
        text = str(error).splitlines()[-1] if str(error) else type(error).__name__
        raise fault(f"the file is damaged: cannot read it as {kind} ({text})", place, hint=again) from None
