# SPDX-License-Identifier: Apache-2.0
"""Operators of trained models in one image, with the C libraries of the boards, against LiteRT.

A sample of all operators and dtypes (models/sampled.py): integers are equal, float32 within the bound of each operator.
`make models` adds the other boards and C libraries.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cover import configured
from requirements_support import need
from sequence_support import Subject, application
from zephyr_support import Workspace

need("tflite", "ai_edge_litert")

from models.sampled import INTEGERS, Sampled, samples  # noqa: E402

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

ALONE = "-DCONFIG_MULTITHREADING=n"
"""Debian's newlib and picolibc have no locks for threads."""
LIBRARIES = {
    "glibc": [],
    "minimal": ["-DCONFIG_MINIMAL_LIBC=y"],
    "newlib": ["-DCONFIG_NEWLIB_LIBC=y", ALONE],
    # Zephyr's file of this toolchain does not declare that it has picolibc.
    "picolibc": ["-DCONFIG_PICOLIBC=y", "-DTOOLCHAIN_HAS_PICOLIBC=ON", ALONE],
}
ARM = ["mps2/an385", "mps2/an386", "mps3/corstone300/an547"]
CONFIGURATIONS = [
    *((board, library) for board in ARM for library in ("newlib", "minimal", "picolibc")),
    ("native_sim/native/64", "glibc"),
]


@pytest.fixture(scope="module")
def files() -> list[Sampled]:
    """Return the files with their inputs and the results of LiteRT."""
    return samples()


@pytest.fixture(scope="module")
def applications(
    files: list[Sampled], opwest: Opwest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, list[Subject]]]:
    """Return a function that makes the application for a C library, once."""
    made: dict[bool, tuple[Path, list[Subject]]] = {}

    def make(library: str) -> tuple[Path, list[Subject]]:
        small = library == "minimal"  # has no functions of real numbers
        if small not in made:
            folder, subjects = tmp_path_factory.mktemp("operators"), []
            for one in files:
                if one.name in INTEGERS or not small:
                    file = folder / f"{one.name}.tflite"
                    file.write_bytes(one.content)
                    subjects.append(Subject(one.name, file, one.inputs, one.outputs))
            made[small] = application(opwest, folder, subjects), subjects
        return made[small]

    return make


@configured("board, library", CONFIGURATIONS)
def test_operators_equal_litert(
    workspace: Workspace,
    files: list[Sampled],
    applications: Callable[[str], tuple[Path, list[Subject]]],
    record_property: Callable[[str, Any], None],
    board: str,
    library: str,
) -> None:
    if library == "picolibc":
        need("arm-none-eabi picolibc")
    app, subjects = applications(library)
    built = workspace.build(app, board, *LIBRARIES[library])
    option = {"glibc": "EXTERNAL_LIBC", "minimal": "MINIMAL_LIBC", "newlib": "NEWLIB_LIBC"}.get(library, "PICOLIBC")
    assert f"CONFIG_{option}=y" in (built.folder / "zephyr" / ".config").read_text().splitlines()
    console = built.run("^finished: ")
    by_name = {one.name: one for one in files}
    rows = []
    for subject in subjects:
        found = subject.parsed(console)
        rows += by_name[subject.name].check(found, f"{board}, {library}")
    record_property("board", [f"{board}, {library}", rows])
