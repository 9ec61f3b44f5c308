# SPDX-License-Identifier: Apache-2.0
"""Headers in a draft: those that declare the functions of other files are `signatures`, not sources to compile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from opwest.base.diagnostics import Diagnostics, Location
from opwest.drafting.files import Given, Unit
from opwest.model.inputs.headers import read_header
from opwest.model.inputs.signatures import report_faults
from opwest.objects.facts import CSource, ObjectError

if TYPE_CHECKING:
    from opwest.objects.c_prototypes import Declarations
    from opwest.objects.c_types import DataModel

_SHOWN = 12


def read_headers(files: Sequence[Given], folder: Path, faults: Diagnostics) -> None:
    """Recognise the headers that are signatures, and read their prototypes; name functions that no file defines."""
    headers = [given for given in files if isinstance(given.item, CSource) and given.item.is_header]
    others = [given for given in files if given not in headers]
    if not headers or not others:
        return
    defined = {name for given in others for name in given.functions}
    for given in headers:
        assert isinstance(given.item, CSource)
        try:
            found = _declarations(given, folder, _model(others))
        except ObjectError as error:
            faults.error(error.message, Location(given.name), expected=error.expected, hint=error.hint)
            continue
        functions = {name for name, one in found.functions.items() if not one.is_defined}
        if not functions & defined and any(one.is_defined for one in found.functions.values()):
            continue  # a source: functions to compile
        given.is_signatures = True
        given.units = [_unit(given, found, folder)]
        report_faults(faults, found.faults, str)
        if functions - defined:
            _note_absent(faults, given.name, sorted(functions - defined))


def _note_absent(faults: Diagnostics, header: str, names: Sequence[str]) -> None:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    what = "a function that no file defines" if len(names) == 1 else "functions that no file defines"
    faults.note(f"the header declares {what}: {', '.join(names[:_SHOWN])}{more}", Location(header))


def _model(files: Sequence[Given]) -> DataModel:
    """Return the data model of the objects."""
    from opwest.objects.c_types import ANY_MODEL, SEVERAL_MODELS, data_model

    members = [unit.member for given in files for unit in given.units if unit.member is not None]
    models = {data_model(member.abi) for member in members}
    if len(models) > 1:
        return SEVERAL_MODELS
    return models.pop() if models else ANY_MODEL


def _declarations(given: Given, folder: Path, model: DataModel) -> Declarations:
    """Return what a header declares."""
    from opwest.objects.c_prototypes import read_declarations

    assert isinstance(given.item, CSource)
    files, folders = {PurePosixPath(given.name): given.item.text}, list(map(PurePosixPath, given.include_dirs))
    return read_declarations(files, lambda header: read_header(folder, header), model, folders=folders)


def _unit(given: Given, found: Declarations, folder: Path) -> Unit:
    """Return the prototypes of a header as a unit that defines nothing."""
    from opwest.drafting.sources import from_header

    contents = {str(file): read_header(folder, file) or b"" for file in found.files}
    described = from_header(found.functions, contents)
    return Unit(given.name, dict.fromkeys(described), frozenset(), certain_needs=False, signatures=described)
