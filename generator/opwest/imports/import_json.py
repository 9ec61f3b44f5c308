# SPDX-License-Identifier: Apache-2.0
"""The file import.json of an import: the model file, the options and the layers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import relative
from opwest.compiler.faults import fault
from opwest.compiler.request import Options, options_of
from opwest.frontends.read import read_file
from opwest.objects.flash import flash_of_text

IMPORT_JSON = "import.json"
VERSION = 2
"""Of the file: 2 has the layers. Files without a version have no layers."""
_HINT = "import the model again"


@dataclass(frozen=True, eq=False)
class ImportJson:
    """The model file and the options of an import."""

    model: Path
    options: Options


def import_json_text(
    model: Path, content: bytes, folder: Path, options: Options | None, layers: Sequence[Mapping[str, Any]]
) -> bytes:
    """Return import.json of an import to a directory. Its paths are relative to the directory.

    `options`: those of a trained model; None for a file of Vela, which `opwest tune` does not import again. `layers`:
    for each model, as in `imports/layers.py`.
    """
    given = None if options is None else _recorded(options, folder)
    head = {"version": VERSION, "model": _relative(model, folder), "sha256": _digest(content), "options": given}
    text = json.dumps(head, indent=2).removesuffix("\n}")
    return f'{text},\n  "models": [{",".join(map(_lines, layers))}]\n}}\n'.encode()


def _recorded(options: Options, folder: Path) -> dict[str, Any]:
    """Return the options that differ from their defaults, with relative paths."""
    defaults = Options()
    recorded = ["format", *(name for name, option in options_of(None).items() if option.is_recorded)]
    given = {
        name: getattr(options, name) for name in recorded if getattr(options, name) not in (getattr(defaults, name), [])
    }
    if options.operators:
        given["operators"] = [[name, _relative(path, folder)] for name, path in options.operators]
    if options.tuning:
        given["tuning"] = [_relative(path, folder) for path in options.tuning]
    return given


def _lines(value: Mapping[str, Any], indent: int = 4) -> str:
    """Return JSON with a line for each row of its lists."""
    space = " " * indent
    parts = []
    for key, item in value.items():
        if isinstance(item, list) and item and all(isinstance(row, dict) for row in item):
            nested = key in ("implementations", "costs")
            rows = (_lines(row, indent + 4) if nested else f"\n{space}    {json.dumps(row)}" for row in item)
            parts.append(f"{json.dumps(key)}: [{','.join(rows)}]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(item)}")
    return f"\n{space}{{{f',{chr(10)}{space} '.join(parts)}}}"


def read_import_json(folder: Path) -> ImportJson:
    """Return import.json of a directory, whose model file is unchanged. Raises OpwestError."""
    place = folder / IMPORT_JSON
    expected = "a directory that 'opwest import' of a trained model wrote"
    try:
        data = json.loads(place.read_bytes())
        model, digest, given = data["model"], data["sha256"], data["options"]
        if given is None:
            raise fault("the record of the import is that of a file of Vela", str(place), expected)
        options = _options(given, folder)
        model = _absolute(model, folder)
    except OSError as error:
        raise fault(f"cannot read the record of the import: {error.strerror}", str(place), expected, _HINT) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise fault("the record of the import is damaged", str(place), hint=_HINT) from None
    if _digest(read_file(model)) != digest:
        raise fault("the model file is not the one that was imported", str(model), hint=_HINT)
    return ImportJson(model, options)


def _options(given: dict[str, Any], folder: Path) -> Options:
    """Return the options with absolute paths. Raises TypeError or ValueError."""
    changed = dict(given)
    changed["operators"] = [(name, str(_absolute(path, folder))) for name, path in given.get("operators", ())]
    changed["tuning"] = [str(_absolute(path, folder)) for path in given.get("tuning", ())]
    options = Options(**changed)
    if options.given_flash is not None:
        flash_of_text(str(options.given_flash))
    return options


def _relative(path: str | Path, folder: Path) -> str:
    return relative(Path(path).absolute(), folder.absolute())


def _absolute(path: str, folder: Path) -> Path:
    return Path(os.path.normpath(folder.absolute() / path))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
