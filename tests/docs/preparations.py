# SPDX-License-Identifier: Apache-2.0
"""The files that the commands of a page need."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from in_process import succeed
from pages import ROOT

sys.path.insert(0, str(ROOT / "tests" / "unit" / "manifest"))  # the example without compiled objects

from manifest_support import copy_digits

SMALL = ROOT / "tests" / "golden" / "minimal"


def readme(folder: Path) -> None:
    """An input for its model."""
    np.save(folder / "x.npy", np.array([1, -2, 3, 1000], np.int16))


def regeneration(folder: Path) -> None:
    """Projects, one with a copied manifest, and the template directory of the page."""
    for place in (".", "models", "firmware/one", "firmware/two"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name in ("manifest.yaml", "negate.c"):
            shutil.copy(SMALL / name, folder / place)
    for place in (".", "firmware/one", "firmware/two"):
        succeed("generate", folder / place / "manifest.yaml", "-o", folder / place / "app")
    layout = re.search(r"^company/\n((?:  .*\n)+)", (ROOT / "docs" / "regeneration.md").read_text(), re.MULTILINE)
    assert layout is not None
    for line in layout[1].splitlines():
        path = folder / "company" / line.split()[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{{ application }}\n" if path.name == "NOTES.md.jinja" else "\n")


def planning(folder: Path) -> None:
    """A manifest, and a table of buffers, MiniMalloc's example."""
    copy_digits(folder)
    lines = ("id,lower,upper,size", "b1,0,3,4", "b2,3,9,4", "b3,0,9,4", "b4,9,21,4", "b5,0,21,4")
    (folder / "buffers.csv").write_text("\n".join(lines) + "\n")


def digits(folder: Path) -> None:
    """The example, its operators as C sources, and an image."""
    succeed("generate", copy_digits(folder), "-o", folder / "app")
    np.save(folder / "image.npy", np.zeros((1, 8, 8, 1), np.int8))


def report(folder: Path) -> None:
    """The same with measurements of a run and an earlier report."""
    digits(folder)
    done = succeed("run", folder / "app", "--host", "--input", f"image={folder}/image.npy", "--json")
    (folder / "run.json").write_text(done.stdout, encoding="utf-8")
    succeed("report", folder / "app", "-o", folder / "old.html")


PREPARATIONS: dict[str, Callable[[Path], None]] = {
    "README.md": readme,
    "planning.md": planning,
    "profiling.md": digits,
    "regeneration.md": regeneration,
    "report.md": report,
}
