# SPDX-License-Identifier: Apache-2.0
"""What a page takes for granted: the files that are at hand where its commands are run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pages import ROOT

SMALL = ROOT / "tests" / "golden" / "minimal"


def generate(manifest: Path, app: Path) -> None:
    command = [sys.executable, "-m", "opwest", "generate", str(manifest), "-o", str(app)]
    subprocess.run(command, check=True, capture_output=True)


def readme(folder: Path) -> None:
    """An input for its model."""
    np.save(folder / "x.npy", np.array([1, -2, 3, 1000], np.int16))


def regeneration(folder: Path) -> None:
    """Some projects, one whose manifest was copied elsewhere, and the template folder that the page shows."""
    for place in (".", "models", "firmware/one", "firmware/two"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name in ("manifest.yaml", "negate.c"):
            shutil.copy(SMALL / name, folder / place)
    generate(folder / "manifest.yaml", folder / "app")
    for name in ("one", "two"):
        generate(folder / "firmware" / name / "manifest.yaml", folder / "firmware" / name / "app")
    layout = re.search(r"^company/\n((?:  .*\n)+)", (ROOT / "docs" / "regeneration.md").read_text(), re.MULTILINE)
    assert layout is not None
    for line in layout[1].splitlines():
        path = folder / "company" / line.split()[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{{ application }}\n" if path.name == "NOTES.md.jinja" else "\n")


PREPARATIONS: dict[str, Callable[[Path], None]] = {"README.md": readme, "regeneration.md": regeneration}
