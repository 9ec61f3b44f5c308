# SPDX-License-Identifier: Apache-2.0
"""The rule for the contents of opwest's packages.

sdist: every file that git tracks, and PKG-INFO. A distributor builds, tests and documents opwest with it.
wheel: the package of generator/, the directories of SHARED below opwest/_share/, licences, and the files of the format.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Collection
from pathlib import Path

PACKAGE = "generator/opwest/"
SHARED = ("schemas/", "project_template/", "zephyr_module/")
LICENCES = (
    "LICENSE",
    "NOTICE",
    "zephyr_module/bundle/ext/libsodium/LICENSE",
    "zephyr_module/bundle/ext/monocypher/LICENSE.txt",
)
"""The licence of opwest, and those of code of others in its packages: `license-files` of pyproject.toml."""
_FORMAT = ("METADATA", "RECORD", "WHEEL", "entry_points.txt")


def faults_of_sdist(path: Path, tracked: Collection[str]) -> list[str]:
    """Return what an sdist lacks, and what it should not contain."""
    top = f"{path.name.removesuffix('.tar.gz')}/"
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    faults = [
        f"{path.name}: '{one.name}' is not a regular file" for one in members if not (one.isfile() or one.isdir())
    ]
    found = {one.name for one in members if one.isfile()}
    return faults + _differences(path, found, {top + name for name in (*tracked, "PKG-INFO")})


def faults_of_wheel(path: Path, tracked: Collection[str]) -> list[str]:
    """Return what a wheel lacks, and what it should not contain."""
    info = f"{'-'.join(path.name.split('-')[:2])}.dist-info/"
    expected = {info + name for name in _FORMAT} | {f"{info}licenses/{name}" for name in LICENCES}
    expected |= {f"opwest/{name.removeprefix(PACKAGE)}" for name in tracked if name.startswith(PACKAGE)}
    expected |= {f"opwest/_share/{name}" for name in tracked if name.startswith(SHARED)}
    with zipfile.ZipFile(path) as archive:
        return _differences(path, set(archive.namelist()), expected)


def _differences(path: Path, found: set[str], expected: set[str]) -> list[str]:
    lacks = [f"{path.name}: no '{name}'" for name in sorted(expected - found)]
    return lacks + [f"{path.name}: unexpected '{name}'" for name in sorted(found - expected)]
