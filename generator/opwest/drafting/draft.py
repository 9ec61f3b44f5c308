# SPDX-License-Identifier: Apache-2.0
"""Draft the text of a manifest from files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.drafting.files import read_files
from opwest.drafting.selection import Selection, select
from opwest.drafting.sketch import sketch
from opwest.drafting.text import draft_text
from opwest.manifest.placeholders import distinct_marks
from opwest.manifest.yaml_reader import read_yaml
from opwest.model.types.identifiers import check_name, fault_of_name
from opwest.objects.targets import named_targets


@dataclass(frozen=True)
class Draft:
    """A manifest with marks."""

    text: str
    marks: int
    """The number of marks."""
    operators: tuple[str, ...]
    left_out: dict[str, str]


def draft_manifest(
    paths: Sequence[Path],
    manifest: Path,
    model: str | None,
    targets: Sequence[str],
    faults: Diagnostics,
    patterns: Sequence[str] = (),
) -> Draft:
    """Return a draft for a manifest at `manifest`. Raises OpwestError for unusable files.

    `patterns` select the functions that become operators; without any, all that can be.
    """
    if model is not None and fault_of_name(model):
        check_name("model", model, None, faults)
    for target in targets:
        if target not in named_targets():
            faults.error(f"unknown target {target!r}", hint=f"{nearest(target, named_targets())}")
    faults.raise_if_errors()
    files = read_files(paths, manifest.parent, faults)
    faults.raise_if_errors()
    selection = select(files, targets, patterns, faults)
    faults.raise_if_errors()
    if not selection.operators:
        _report_nothing(selection, faults)
    faults.raise_if_errors()
    text = draft_text(model or _model_name(manifest), selection, sketch(selection.operators))
    return Draft(text, _count(text), tuple(o.name for o in selection.operators), selection.left_out)


def _report_nothing(selection: Selection, faults: Diagnostics) -> None:
    reasons = [f"{symbol}: {reason}" for symbol, reason in list(selection.left_out.items())[:8]]
    reasons += [f"{file}: {reason}" for file, reason in selection.unlisted.items()]
    faults.error(
        "no operator found in the files",
        expected="global functions that take pointers to tensors and return void, a status or a value",
        hint="; ".join(reasons) or "the files define no global function",
    )


def _count(text: str) -> int:
    """Return the number of marks in a draft, as found by `opwest check`."""
    manifest = read_yaml(text.encode(), "draft", Diagnostics())
    return len(distinct_marks(manifest)[0]) if manifest is not None else 0


def _model_name(manifest: Path) -> str:
    """Return a model's name for a manifest: the file's stem, or the directory's name for `manifest.yaml`."""
    for word in (manifest.stem, manifest.absolute().parent.name):
        name = re.sub(r"\W+", "_", word, flags=re.ASCII).strip("_").lower()
        if word != "manifest" and name and fault_of_name(name) is None:
            return name
    return "model"
