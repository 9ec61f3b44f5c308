# SPDX-License-Identifier: Apache-2.0
"""The file import.json of an import: the model file and the options."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import relative
from opwest.compiler.faults import fault
from opwest.compiler.request import Options, options_of
from opwest.frontends.read import read_file
from opwest.objects.flash import flash_of_text

IMPORT_JSON = "import.json"
_HINT = "import the model again"


@dataclass(frozen=True, eq=False)
class ImportJson:
    """The model file and the options of an import."""

    model: Path
    options: Options


def import_json_text(model: Path, content: bytes, folder: Path, options: Options) -> bytes:
    """Return import.json of an import to a directory. Its paths are relative to the directory."""
    defaults = Options()
    recorded = ["format", *(name for name, option in options_of(None).items() if option.is_recorded)]
    given = {
        name: getattr(options, name) for name in recorded if getattr(options, name) not in (getattr(defaults, name), [])
    }
    if options.operators:
        given["operators"] = [[name, _relative(path, folder)] for name, path in options.operators]
    if options.tuning:
        given["tuning"] = [_relative(path, folder) for path in options.tuning]
    data = {"model": _relative(model, folder), "sha256": _digest(content), "options": given}
    return (json.dumps(data, indent=2) + "\n").encode()


def read_import_json(folder: Path) -> ImportJson:
    """Return import.json of a directory, whose model file is unchanged. Raises OpwestError."""
    place = folder / IMPORT_JSON
    try:
        data = json.loads(place.read_bytes())
        model, digest, given = data["model"], data["sha256"], data["options"]
        options = _options(given, folder)
        model = _absolute(model, folder)
    except OSError as error:
        expected = "a directory that 'opwest import' of a TFLite or ONNX model wrote"
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
