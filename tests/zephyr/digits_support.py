# SPDX-License-Identifier: Apache-2.0
"""Copies of the digits example with other objects."""

import shutil
from pathlib import Path

from examples.example_files import held_out_of
from zephyr_support import ROOT

PREDICTIONS = [
    *(f"predictions: {' '.join(map(str, row))}" for row in held_out_of("digits")[2].reshape(-1, 40)),
    *("predictions: 360 of 360 equal the reference", "accuracy: 99.17 %"),
]
"""The lines of the application, on every platform."""


def predictions(built):
    """Run the application; return its lines, without Zephyr's own."""
    console = built.run(r"^accuracy: .*$")
    return [line for line in console.splitlines() if line.startswith(("predictions:", "accuracy:"))]


def copied(folder):
    """Copy the example without its objects; return the directory."""
    return Path(
        shutil.copytree(ROOT / "examples" / "digits", folder, ignore=shutil.ignore_patterns("objects", "__pycache__"))
    )


def with_objects(folder, entries):
    """Replace `objects:` in the manifest of a copy; return the manifest.

    Each of `entries` is a YAML mapping in one line, without the dash.
    """
    manifest = folder / "manifest.yaml"
    before, rest = manifest.read_text().split("\nobjects:\n")
    listed = "".join(f"  - {entry}\n" for entry in entries)
    manifest.write_text(f"{before}\nobjects:\n{listed}{rest[rest.index(chr(10) + '# The memory') :]}")
    return manifest


def of_sources(folder):
    """Copy the example with its C sources as operators, for any target; return the manifest."""
    sources = sorted(path.relative_to(folder) for path in copied(folder).glob("operators/*.c"))
    return with_objects(folder, [f"{{files: [{', '.join(map(str, sources))}]}}"])
