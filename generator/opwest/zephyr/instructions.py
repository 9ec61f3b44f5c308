# SPDX-License-Identifier: Apache-2.0
"""Instructions of objects that the processor of a board can lack although its target matches.

The DSP extension is optional on Armv8-M. The named targets leave it open, and Zephyr compiles for a core without
`CONFIG_ARMV8_M_DSP` with +nodsp (cmake/gcc-m-cpu.cmake), but its linker accepts objects that use the extension.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.diagnostics import Diagnostics
from opwest.model.builds import TargetBuild
from opwest.model.model import Model
from opwest.objects.attributes import abi_of
from opwest.objects.elf import parse_elf
from opwest.zephyr.processors import known_configuration
from opwest.zephyr.workspace import Workspace

_DSP = "ARMV8_M_DSP"


def check_instructions(
    models: Sequence[Model], board: str, target: str, workspace: Workspace | None, faults: Diagnostics
) -> None:
    """Warn of objects with DSP instructions for a board whose configuration does not select them.

    It is no error: the SoC files of some boards do not select an extension that the processor has (RP2350).
    """
    found = known_configuration(board, workspace) if workspace is not None else None
    if found is None or _DSP in found.true():
        return
    for model in models:
        for build in model.builds:
            named = _with_dsp(build) if build.target is not None and build.target.name == target else []
            if named:
                faults.warning(
                    f"objects of model {model.name!r} for target {target!r} use DSP instructions, which the "
                    f"configuration of board {board!r} does not select: {', '.join(named[:4])}"
                    + (", …" if len(named) > 4 else ""),
                    model.location,
                    expected=f"CONFIG_{_DSP}=y, or objects without DSP instructions",
                    hint="if the processor lacks the extension, as the nRF5340's network core does, compile with "
                    "+nodsp appended to -mcpu; otherwise ignore this warning",
                )


def _with_dsp(build: TargetBuild) -> list[str]:
    """Return the objects of a build for Armv8-M whose attributes name the DSP extension."""
    target = build.target
    if target is None or target.arch != "v8-M.mainline" or target.dsp is not None:
        return []
    return [one.origin for one in build.objects if abi_of(parse_elf(one.content)).dsp]
