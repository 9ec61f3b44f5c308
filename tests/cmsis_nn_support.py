# SPDX-License-Identifier: Apache-2.0
"""CMSIS-NN of the Zephyr workspace."""

import os
from collections.abc import Iterable
from pathlib import Path

from requirements_support import skip_here


def cmsis_nn_directory() -> Path:
    """Return $CMSIS_NN or the module of the workspace; skips the test without one."""
    base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
    found = Path(os.environ.get("CMSIS_NN") or base.parent / "modules" / "lib" / "cmsis-nn")
    if not (found / "Include" / "arm_nnfunctions.h").is_file():
        skip_here(f"no CMSIS-NN at {found}, and CMSIS_NN is not set")
    return found


VARIANTS = {"cortex-m3": "cmsis-nn-none", "cortex-m4": "cmsis-nn-dsp", "cortex-m55": "cmsis-nn-mve"}
"""The variants that call CMSIS-NN, by core."""


def planted_table(file: Path, layer: int, cores: Iterable[str], place: Path) -> Path:
    """Write a table of measurements in which CMSIS-NN is the fastest for one layer of a model, and for no other."""
    from opwest.compiler.request import Options
    from opwest.compiler.selection.costs import Table, key_of
    from opwest.compiler.selection.tuning_files import Tables, text_of
    from opwest.imports.prepare import prepare, program_of

    (graph,) = prepare(file, Options(), lambda _: None).graphs
    operation = program_of(graph, Options(), str(file)).operations[layer]
    tables = {core: Table(core, {key_of(operation): {VARIANTS[core]: (1, 100)}}, {}) for core in cores}
    place.write_text(text_of(Tables(tables, {})), encoding="utf-8")
    return place


_TABLES = "Source/CommonTables"


def cmsis_nn_modules(base: Path, work: Path) -> list[str]:
    """Return the option that selects the modules for CMSIS-NN, if the workspace has no tables of CMSIS-DSP.

    Zephyr's option for CMSIS-NN selects CMSIS-DSP with these tables, several MB that CMSIS-NN does not use.
    Raises FileNotFoundError without the modules.
    """
    found = base.parent / "modules"
    dsp, own = found / "lib/cmsis-dsp", work / "cmsis-dsp"
    missing = [p for p in (found / "lib/cmsis-nn", dsp) if not p.is_dir()]
    if missing:
        raise FileNotFoundError(f"missing: {', '.join(map(str, missing))}")
    tables = [f"{_TABLES}/arm_common_tables{suffix}.c" for suffix in ("", "_f16")]
    if all((dsp / one).is_file() for one in tables):
        return []
    (own / _TABLES).mkdir(parents=True)
    for one in (dsp / _TABLES).iterdir():
        (own / _TABLES / one.name).symlink_to(one)
    for one in tables:
        if not (own / one).is_file():
            (own / one).write_text("/* unused */\n")
    for one in ("Include", "PrivateInclude", "zephyr"):
        (own / one).symlink_to(dsp / one)
    rest = [found / one for one in ("hal/cmsis", "hal/cmsis_6", "lib/cmsis-nn", "lib/picolibc")]
    return [f"-DZEPHYR_MODULES={';'.join(map(str, [own, *(p for p in rest if p.is_dir())]))}"]
