# SPDX-License-Identifier: Apache-2.0
"""The variant of each model that a report describes: that of the images, of a target or of a board, or a named one."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.objects.targets import named_targets
from opwest.project.request import Examination, of_variant
from opwest.reports.images import LinkedImage, check_examination, check_models
from opwest.zephyr.board_targets import variant_of_board
from opwest.zephyr.workspace import find_workspace


@dataclass(frozen=True)
class Selection:
    """The options that select variants; at most one of them is given."""

    variant: str | None = None
    target: str | None = None
    board: str | None = None

    def check(self, faults: Diagnostics) -> None:
        """Report several options."""
        given = [f"--{name}" for name in ("variant", "target", "board") if getattr(self, name) is not None]
        if len(given) > 1:
            faults.error(f"{' and '.join(given)} exclude each other", expected="one of them: each selects a variant")


def choose(
    examinations: Sequence[Examination], selection: Selection, images: Sequence[LinkedImage], faults: Diagnostics
) -> list[Examination]:
    """Return the examination of each model that a report describes: the base, or the selected variant.

    Without a selection, images select the variants that they contain. Raises OpwestError with every fault.
    """
    selection.check(faults)
    faults.raise_if_errors()
    if selection.variant is not None:
        chosen = of_variant(examinations, selection.variant, faults)
    else:
        chosen = [
            _of_model([item for item in examinations if item.model.name == base.model.name], selection, images, faults)
            for base in of_variant(examinations, None, faults)
        ]
    check_models(images, [item.model.name for item in chosen], faults)
    for item in chosen:
        check_examination(
            item, [other for other in examinations if other.model.name == item.model.name], images, faults
        )
    faults.raise_if_errors()
    return chosen


def _of_model(
    family: Sequence[Examination], selection: Selection, images: Sequence[LinkedImage], faults: Diagnostics
) -> Examination:
    """Return the base or the variant of one model; the base comes first in `family`."""
    if selection.target is not None:
        return _of_target(family, selection.target, faults)
    if selection.board is not None:
        model = variant_of_board([item.model for item in family], selection.board, find_workspace())
        if model is None:
            faults.error(
                f"--board {selection.board}: unknown board or processor",
                expected="a board of the Zephyr workspace",
                hint="--target NAME, or --variant NAME",
            )
            return family[0]
        return next(item for item in family if item.model is model)
    for image in images:
        note = image.notes.get(family[0].model.name)
        if note is not None:
            return next((item for item in family if _name(item) == note.get("variant")), family[0])
    return family[0]


def _of_target(family: Sequence[Examination], target: str, faults: Diagnostics) -> Examination:
    own = {build.target.name for item in family for build in item.model.builds if build.target is not None}
    own |= {known.name for item in family if item.model.variant for known in item.model.variant.targets}
    if target not in own and target not in named_targets():
        hint = nearest(target, [*own, *named_targets()])
        faults.error(f"--target: unknown target '{target}'", expected=", ".join(sorted(own)) or None, hint=hint)
    for item in family:
        variant = item.model.variant
        if variant is not None and any(known.name == target for known in variant.targets):
            return item
    return family[0]


def _name(examination: Examination) -> str | None:
    return examination.model.variant.name if examination.model.variant else None
