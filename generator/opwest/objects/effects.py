# SPDX-License-Identifier: Apache-2.0
"""Functions of C libraries with effects that are not visible in their arguments.

The program of the runtime that judges compiled operators (`zephyr_module/scripts/effects.py`) contains the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from opwest.records import dataclass
from opwest.resources import script

EFFECTS: Final = ("state", "heap", "io", "nondeterminism", "control", "fenv")
"""`stateful: true` permits the first one, `uses` the others."""
EFFECT_EXPECTED: Final = "an operator whose results depend on its arguments only"


@dataclass(frozen=True, slots=True)
class HiddenEffect:
    """A called function, or an instruction, with effects that the manifest does not permit."""

    name: str
    effects: tuple[str, ...]
    text: str
    """What was found, without the name of the object."""
    hint: str
    remedy: str
    """What a manifest can add so that the object is accepted."""


def hidden_effects(
    functions: Iterable[str], libcs: Iterable[str], permitted: Collection[str] = frozenset()
) -> list[HiddenEffect]:
    """Return the functions with effects, in any of the C libraries `libcs`, that are not permitted."""
    return [HiddenEffect(*found) for found in script("effects").hidden(functions, tuple(libcs), permitted)]


def instruction_effect(instruction: str, function: str, effect: str) -> HiddenEffect:
    """Return the effect of an instruction in a function, which is empty for assembly in a source."""
    return HiddenEffect(*script("effects").instruction(instruction, function, effect))
